DECLARE @id int = OBJECT_ID(@objname), @name sysname;
SET @name = OBJECT_NAME(@id);

SELECT name AS Name, 'dbo' AS Owner,
       CASE type WHEN 'U' THEN 'user table' WHEN 'V' THEN 'view' WHEN 'P' THEN 'stored procedure'
                 WHEN 'FN' THEN 'scalar function' WHEN 'IF' THEN 'inline function' ELSE LOWER(REPLACE(type_desc, '_', ' ')) END AS Type,
       create_date AS Created_datetime
FROM sys.objects WHERE object_id = @id;

IF EXISTS (SELECT * FROM sys.columns WHERE object_id = @id)
    SELECT c.name AS Column_name, TYPE_NAME(c.user_type_id) AS Type,
           CASE c.is_computed WHEN 1 THEN 'yes' ELSE 'no' END AS Computed, CAST(c.max_length AS int) AS Length,
           CASE WHEN c.precision = 0 THEN '' ELSE CAST(c.precision AS varchar(5)) END AS Prec,
           CASE WHEN c.precision = 0 THEN '' ELSE CAST(c.scale AS varchar(5)) END AS Scale,
           CASE c.is_nullable WHEN 1 THEN 'yes' ELSE 'no' END AS Nullable,
           '(n/a)' AS TrimTrailingBlanks, '(n/a)' AS FixedLenNullInSource, c.collation_name AS Collation
    FROM sys.columns c WHERE c.object_id = @id ORDER BY c.column_id;

IF OBJECTPROPERTY(@id, 'IsUserTable') = 1
BEGIN
    IF EXISTS (SELECT * FROM sys.columns WHERE object_id = @id AND is_identity = 1)
        SELECT name AS [Identity], seed_value AS Seed, increment_value AS Increment, 0 AS [Not For Replication]
        FROM sys.identity_columns WHERE object_id = @id;
    ELSE
        SELECT 'No identity column defined.' AS [Identity], CAST(NULL AS int) AS Seed, CAST(NULL AS int) AS Increment,
               CAST(NULL AS int) AS [Not For Replication];

    SELECT 'No rowguidcol column defined.' AS [RowGuidCol];

    SELECT 'PRIMARY' AS Data_located_on_filegroup;

    IF EXISTS (SELECT * FROM sys.indexes WHERE object_id = @id AND name IS NOT NULL)
        SELECT i.name AS index_name,
               LOWER(i.type_desc) + CASE i.is_unique WHEN 1 THEN ', unique' ELSE '' END
                   + CASE i.is_primary_key WHEN 1 THEN ', primary key' ELSE '' END
                   + CASE i.is_unique_constraint WHEN 1 THEN ', unique key' ELSE '' END + ' located on PRIMARY'
                   AS index_description,
               STUFF((SELECT ', ' + c.name + CASE k.is_descending_key WHEN 1 THEN '(-)' ELSE '' END
                      FROM sys.index_columns k JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
                      WHERE k.object_id = i.object_id AND k.index_id = i.index_id ORDER BY k.key_ordinal
                      FOR XML PATH('')), 1, 2, '') AS index_keys
        FROM sys.indexes i WHERE i.object_id = @id AND i.name IS NOT NULL ORDER BY i.name;
    ELSE
        PRINT 'The object ''' + @name + ''' does not have any indexes, or you do not have permissions.';

    IF EXISTS (SELECT * FROM sys.key_constraints WHERE parent_object_id = @id)
       OR EXISTS (SELECT * FROM sys.foreign_keys WHERE parent_object_id = @id)
       OR EXISTS (SELECT * FROM sys.check_constraints WHERE parent_object_id = @id)
       OR EXISTS (SELECT * FROM sys.default_constraints WHERE parent_object_id = @id)
        SELECT c.constraint_type, c.constraint_name
        FROM (SELECT CASE type WHEN 'PK' THEN N'PRIMARY KEY' ELSE N'UNIQUE' END AS constraint_type, name AS constraint_name
              FROM sys.key_constraints WHERE parent_object_id = @id
              UNION ALL
              SELECT N'FOREIGN KEY', name FROM sys.foreign_keys WHERE parent_object_id = @id
              UNION ALL
              SELECT N'CHECK Table Level', name FROM sys.check_constraints WHERE parent_object_id = @id
              UNION ALL
              SELECT N'DEFAULT on column ' + COL_NAME(@id, parent_column_id), name
              FROM sys.default_constraints WHERE parent_object_id = @id) c
        ORDER BY c.constraint_name;
    ELSE
        PRINT 'No constraints are defined on object ''' + @name + ''', or you do not have permissions.';
END;
