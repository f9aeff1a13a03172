EXEC sp_helpfile;
