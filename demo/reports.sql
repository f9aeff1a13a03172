-- Northwind's own reports, then an order that is taken, changed and cancelled, and a check: what `lab yours` executed for
-- lab/records/full-*/yours.jsonl, on the database that demo/northwind.sql makes. Any file of statements will do.
SELECT * FROM "Invoices";
SELECT * FROM "Orders Qry";
SELECT * FROM "Order Details Extended";
SELECT * FROM "Order Subtotals";
SELECT * FROM "Sales by Category";
SELECT * FROM "Quarterly Orders";
SELECT * FROM "Summary of Sales by Year";
SELECT * FROM "Customer and Suppliers by City";
SELECT * FROM "Products Above Average Price";
SELECT ProductName, sum(d.UnitPrice * d.Quantity * (1 - d.Discount)) AS Sales
  FROM "Order Details" d JOIN Products p USING (ProductID) GROUP BY p.ProductID ORDER BY Sales DESC LIMIT 10;
INSERT INTO Orders (CustomerID, EmployeeID, OrderDate, ShipVia, Freight)
  SELECT CustomerID, 5, '2016-11-04', 1, 10.0 FROM Customers;
INSERT INTO "Order Details" (OrderID, ProductID, UnitPrice, Quantity, Discount)
  SELECT OrderID, 11, 14.0, 12, 0.0 FROM Orders WHERE OrderDate = '2016-11-04';
UPDATE Products SET UnitsInStock = UnitsInStock - 12 WHERE ProductID = 11;
UPDATE Orders SET ShippedDate = '2016-11-05' WHERE OrderDate = '2016-11-04';
DELETE FROM "Order Details" WHERE OrderID IN (SELECT OrderID FROM Orders WHERE OrderDate = '2016-11-04');
DELETE FROM Orders WHERE OrderDate = '2016-11-04';
CREATE INDEX OrdersByDate ON Orders (OrderDate);
PRAGMA integrity_check;
