USE master;
GO

CREATE MASTER KEY ENCRYPTION BY PASSWORD = '1qaz!QAZ';
GO

IF EXISTS (select * from sys.certificates where name = 'TestBackupCert') DROP CERTIFICATE TestBackupCert;

CREATE CERTIFICATE TestBackupCert WITH SUBJECT = 'Backup Encryption Certificate';
GO

BACKUP DATABASE [IndexDemo] TO DISK = 'IndexDemoDB.bak' 
WITH FORMAT, STATS=5
, ENCRYPTION (ALGORITHM = TRIPLE_DES_3KEY, SERVER CERTIFICATE = TestBackupCert);
  -- AES_128, AES_192, AES_256, TRIPLE_DES_3KEY
GO
