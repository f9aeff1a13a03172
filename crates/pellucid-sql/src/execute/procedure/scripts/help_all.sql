SELECT name AS Name, 'dbo' AS Owner, LOWER(REPLACE(type_desc, '_', ' ')) AS Object_type
FROM sys.objects ORDER BY Owner, Object_type DESC, Name;
