SET STATISTICS TIME ON;
USE [WideWorldImporters]
GO
Print '--- Normal DB ---'
UPDATE STATISTICS [Warehouse].[StockItemTransactions]
WITH FULLSCAN
UPDATE STATISTICS [Sales].[OrderLines]
WITH FULLSCAN
UPDATE STATISTICS [Warehouse].[StockItems]
WITH FULLSCAN
UPDATE STATISTICS [Application].[People]
WITH FULLSCAN
UPDATE STATISTICS [Purchasing].[PurchaseOrderLines]
WITH FULLSCAN
Print '--- END Normal DB ---'
USE [WideWorldImporters_encrypted]
GO
Print '--- Encrypted DB ---'
UPDATE STATISTICS [Warehouse].[StockItemTransactions]
WITH FULLSCAN
UPDATE STATISTICS [Sales].[OrderLines]
WITH FULLSCAN
UPDATE STATISTICS [Warehouse].[StockItems]
WITH FULLSCAN
UPDATE STATISTICS [Application].[People]
WITH FULLSCAN
UPDATE STATISTICS [Purchasing].[PurchaseOrderLines]
WITH FULLSCAN
Print '--- END Encrypted DB ---'
SET STATISTICS TIME OFF;
