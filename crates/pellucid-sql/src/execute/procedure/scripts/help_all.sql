SELECT name AS Name, 'dbo' AS Owner,
       CASE RTRIM(type) WHEN 'PK' THEN 'primary key cns' WHEN 'UQ' THEN 'unique key cns' WHEN 'F' THEN 'foreign key cns'
       WHEN 'C' THEN 'check cns' WHEN 'D' THEN 'default (maybe cns)'
       ELSE LOWER(REPLACE(type_desc, '_', ' ')) END AS Object_type
FROM sys.objects ORDER BY Owner, Object_type DESC, Name;
