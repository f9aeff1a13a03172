//! Goal: functions give what Microsoft's reference says. Method: expected values typed by hand from the page named at
//! each table, or from its rules.

use crate::server::Session;

/// "String Functions (Transact-SQL)": LEN, LEFT, RIGHT, SUBSTRING, CHARINDEX, PATINDEX, REPLACE, STUFF and others.
#[test]
fn texts() {
    Session::new().values(&[
        ("LEN('abc  ')", "3"),
        ("LEN('  abc')", "5"),
        ("LEN(NULL)", "NULL"),
        ("LEN(12345)", "5"),
        ("DATALENGTH('abc  ')", "5"),
        ("DATALENGTH(N'abc')", "6"),
        ("DATALENGTH(1)", "4"),
        ("DATALENGTH(CAST(1.5 AS numeric(10,2)))", "9"),
        ("LEFT('abcdefg', 2)", "ab"),
        ("RIGHT('abcdefg', 2)", "fg"),
        ("RIGHT('0' + RTRIM(7), 2)", "07"),
        ("RIGHT('0' + RTRIM(12), 2)", "12"),
        ("SUBSTRING('abcdef', 2, 3)", "bcd"),
        ("SUBSTRING('abcdef', 0, 3)", "ab"),
        ("SUBSTRING('abcdef', 5, 10)", "ef"),
        ("SUBSTRING(0x010203, 2, 1)", "0x02"),
        ("CHARINDEX('is', 'This is a string')", "3"),
        ("CHARINDEX('is', 'This is a string', 4)", "6"),
        ("CHARINDEX('IS', 'This is a string')", "3"),
        ("CHARINDEX('x', 'abc')", "0"),
        ("PATINDEX('%ter%', 'interesting data')", "3"),
        ("PATINDEX('%en_ure%', 'Please ensure the door is locked!')", "8"),
        ("PATINDEX('%[^ 0-9A-z]%', 'Please ensure the door is locked!')", "33"),
        ("REPLACE('abcdefghicde', 'cde', 'xxx')", "abxxxfghixxx"),
        ("REPLACE('AbAb', 'ab', 'x')", "xx"),
        ("STUFF('abcdef', 2, 3, 'ijklmn')", "aijklmnef"),
        ("STUFF('abcdef', 2, 3, NULL)", "aef"),
        ("STUFF('abc', 9, 1, 'x')", "NULL"),
        ("REPLICATE('0', 4) + 'a'", "0000a"),
        ("REPLICATE('x', -1)", "NULL"),
        ("'a' + SPACE(2) + 'b'", "a  b"),
        ("LTRIM('  a ') + '|'", "a |"),
        ("RTRIM('  a ') + '|'", "  a|"),
        ("TRIM('  a ') + '|'", "a|"),
        ("UPPER('aé') + LOWER('AÉ')", "AÉaé"),
        ("STR(123.45, 6, 1)", " 123.5"),
        ("STR(123.45, 2, 2)", "**"),
        ("STR(147)", "       147"),
        ("CONCAT('Happy ', 'Birthday ', 11, '/', '25')", "Happy Birthday 11/25"),
        ("CONCAT('a', NULL, 'b')", "ab"),
        (
            "CONCAT_WS(',', '1 Microsoft Way', NULL, NULL, 'Redmond', 'WA', 98052)",
            "1 Microsoft Way,Redmond,WA,98052",
        ),
        ("QUOTENAME('abc[]def')", "[abc[]]def]"),
        ("QUOTENAME('it''s', '''')", "'it''s'"),
        ("ASCII('A')", "65"),
        ("CHAR(65) + NCHAR(8364)", "A€"),
        ("UNICODE(N'Åkergatan 24')", "197"),
        ("REVERSE('abc')", "cba"),
        ("PARSENAME('AdventureWorks2022.dbo.DimCustomer', 1)", "DimCustomer"),
        ("PARSENAME('AdventureWorks2022.dbo.DimCustomer', 4)", "NULL"),
        ("PARSENAME('[a.b].c', 2)", "a.b"),
        ("TRANSLATE('2*[3+4]/{7-2}', '[]{}', '()()')", "2*(3+4)/(7-2)"),
    ]);
}

/// "GREATEST", "LEAST", "DATETRUNC", "FORMATMESSAGE", "SOUNDEX", "CRYPT_GEN_RANDOM".
#[test]
fn newer_functions_and_rarer_ones() {
    let mut session = Session::new();
    session.values(&[
        ("GREATEST('6.62', 3.1415, N'7')", "7.0000"),
        ("GREATEST(1, NULL, 3)", "3"),
        ("LEAST(1, NULL, 3)", "1"),
        ("LEAST(NULL, NULL)", "NULL"),
        ("GREATEST('Glacier', 'Joshua Tree', 'Mount Rainier')", "Mount Rainier"),
        ("LEAST('b', 'A', 'c ')", "A"),
        ("GREATEST('a', 'A')", "a"),
        ("LEAST(-1.5, -10)", "-10.0"),
        ("GREATEST(CAST('20200101' AS date), '20210101')", "2021-01-01"),
        (
            "DATETRUNC(year, CAST('2021-12-08 11:30:15.1234567' AS datetime2(7)))",
            "2021-01-01 00:00:00.0000000",
        ),
        ("DATETRUNC(quarter, CAST('2021-12-08' AS date))", "2021-10-01"),
        ("DATETRUNC(week, CAST('2021-11-11' AS date))", "2021-11-07"),
        ("DATETRUNC(iso_week, CAST('2021-11-11' AS date))", "2021-11-08"),
        ("DATETRUNC(iso_week, CAST('2021-11-14' AS date))", "2021-11-08"),
        ("DATETRUNC(hour, CAST('2021-12-08 11:30:15' AS datetime))", "2021-12-08 11:00:00.000"),
        ("DATETRUNC(day, NULL)", "NULL"),
        ("FORMATMESSAGE('%s, %5d of %i', 'abc', 7, 42)", "abc,     7 of 42"),
        ("FORMATMESSAGE(NULL)", "NULL"),
        ("SOUNDEX('Smith') + SOUNDEX('Smythe')", "S530S530"),
        ("SOUNDEX('Robert') + SOUNDEX('Rupert')", "R163R163"),
        ("SOUNDEX('Tymczak') + SOUNDEX('Pfister')", "T522P236"),
        ("DATALENGTH(CRYPT_GEN_RANDOM(50))", "50"),
        ("DATALENGTH(CRYPT_GEN_RANDOM(4, 0x25F18060))", "4"),
        ("IIF(CRYPT_GEN_RANDOM(16) = CRYPT_GEN_RANDOM(16), 1, 0)", "0"),
    ]);
    session.fails(&[
        ("SELECT GREATEST(NEWID(), NEWID())", 50_001, "'GREATEST of uniqueidentifier' is not supported."),
        ("SELECT SOUNDEX('O''Brien')", 50_001, "'SOUNDEX of other text than letters from A to Z' is not supported."),
        ("SELECT FORMATMESSAGE(20009)", 50_001, "'FORMATMESSAGE of a message's number' is not supported."),
        (
            "SELECT DATETRUNC(weekday, CAST('20200101' AS datetime))",
            9810,
            "The datepart weekday is not supported by date function datetrunc for data type datetime.",
        ),
        (
            "SELECT DATETRUNC(hour, CAST('20200101' AS date))",
            9810,
            "The datepart hour is not supported by date function datetrunc for data type date.",
        ),
        ("SELECT CRYPT_GEN_RANDOM(0)", 50_001, "'CRYPT_GEN_RANDOM of less than 1 or more than 8000' is not supported."),
        // Key material, in whatever spelling; and what no page says how to reckon.
        ("SELECT certprivatekey(1, 'x')", 50_001, "'CERTPRIVATEKEY' is not supported."),
        ("SELECT CERTPRIVATEKEY(1, 'x', 'y')", 50_001, "'CERTPRIVATEKEY' is not supported."),
        ("SELECT DIFFERENCE('a', 'b')", 50_001, "'DIFFERENCE' is not supported."),
        ("SELECT SYSDATETIMEOFFSET()", 50_001, "'SYSDATETIMEOFFSET' is not supported."),
        ("SELECT ISJSON('{}')", 50_001, "'ISJSON' is not supported."),
        ("SELECT PWDENCRYPT('x')", 50_001, "'PWDENCRYPT' is not supported."),
    ]);
}

/// "LIKE (Transact-SQL)": wildcards, classes, ESCAPE.
#[test]
fn like() {
    let mut session = Session::new();
    for (text, pattern, is) in [
        ("test01", "test%", true),
        ("TEST01", "test%", true),
        ("atest", "test%", false),
        ("computer", "%puter", true),
        ("Dean", "_ean", true),
        ("Carsen", "[C-P]arsen", true),
        ("Karsen", "[^C]arsen", true),
        ("Carsen", "[^C]arsen", false),
        ("5%", "5[%]", true),
        ("50", "5[%]", false),
        ("_n", "[_]n", true),
        ("a-f", "a[-]f", true),
        ("]", "]", true),
        ("[", "[[]", true),
        ("abc", "abc  ", false),
        ("abc  ", "abc", true),
        ("", "%", true),
    ] {
        let shown = session.value(&format!("IIF('{text}' LIKE '{pattern}', 1, 0)")).unwrap();
        assert_eq!(shown, u8::from(is).to_string(), "{text} LIKE {pattern}");
    }
    session.values(&[
        ("IIF('10-15% off' LIKE '%10-15!% off%' ESCAPE '!', 1, 0)", "1"),
        ("IIF('10-15x off' LIKE '%10-15!% off%' ESCAPE '!', 1, 0)", "0"),
        ("IIF('A' COLLATE Latin1_General_CS_AS LIKE 'a', 1, 0)", "0"),
        ("IIF('a ' = 'A', 1, 0)", "1"),
        ("IIF('a' COLLATE Latin1_General_BIN = 'A', 1, 0)", "0"),
        // Spaces at the end count where an operand is national.
        ("IIF('abc  ' LIKE 'abc', 1, 0)", "1"),
        ("IIF(N'abc  ' LIKE 'abc', 1, 0)", "0"),
        ("IIF('abc  ' LIKE N'abc', 1, 0)", "0"),
        ("IIF(N'abc  ' LIKE N'abc%', 1, 0)", "1"),
        ("IIF('abc  ' LIKE 'abc ', 1, 0)", "1"),
        ("IIF('abc x ' LIKE '%x', 1, 0)", "1"),
        ("IIF('abcabd  ' LIKE '%ab_', 1, 0)", "1"),
    ]);
}

/// "Mathematical Functions (Transact-SQL)": ROUND, FLOOR, CEILING, ABS, SIGN, POWER, SQRT.
#[test]
fn numbers() {
    Session::new().values(&[
        ("ABS(-1.0)", "1.0"),
        ("SIGN(-125)", "-1"),
        ("CEILING($123.45)", "124.0000"),
        ("CEILING(-$123.45)", "-123.0000"),
        ("CEILING(123.45)", "124"),
        ("FLOOR(-123.45)", "-124"),
        ("FLOOR(123.45)", "123"),
        ("FLOOR(5)", "5"),
        ("ROUND(123.9994, 3)", "123.9990"),
        ("ROUND(123.9995, 3)", "124.0000"),
        ("ROUND(123.4545, 2)", "123.4500"),
        ("ROUND(748.58, -1)", "750.00"),
        ("ROUND(748.58, -2)", "700.00"),
        ("ROUND(150.75, 0)", "151.00"),
        ("ROUND(150.75, 0, 1)", "150.00"),
        ("ROUND(1255, -2)", "1300"),
        ("POWER(2, 10)", "1024"),
        ("POWER(2.0, -1)", "0.5"),
        ("POWER(2.0, 10)", "1024.0"),
        // Rounded once, at the end: 2.7048..
        ("POWER(1.01, 100)", "2.70"),
        ("POWER(-1.5, 3)", "-3.4"),
        ("POWER(1.01, 1000)", "20959.16"),
        ("SIGN(0.5)", "1.0"),
        ("SIGN(-0.05)", "-1.00"),
        ("SIGN(-$2)", "-1.0000"),
        ("-CAST(255 AS tinyint)", "-255"),
        ("SQRT(25)", "5"),
        ("SQUARE(3)", "9"),
        ("ISNUMERIC('12.5')", "1"),
        ("ISNUMERIC('abc')", "0"),
        ("ISNUMERIC('$1,000')", "1"),
        ("ISNUMERIC(NULL)", "0"),
    ]);
}

/// "CAST and CONVERT (Transact-SQL)": numbers, money, binary.
#[test]
fn conversions() {
    Session::new().values(&[
        ("CONVERT(int, ' 42 ')", "42"),
        ("CONVERT(int, '')", "0"),
        ("CONVERT(bit, 'TRUE')", "1"),
        ("CONVERT(bit, 42)", "1"),
        ("CONVERT(varchar(2), 123)", "*"),
        ("CONVERT(varchar(3), 'abcdef')", "abc"),
        ("CONVERT(char(3), 'a') + '|'", "a  |"),
        ("CONVERT(varchar(10), CAST(12.5 AS decimal(6,3)))", "12.500"),
        ("CONVERT(varchar(20), $4235.98)", "4235.98"),
        ("CONVERT(varchar(20), $4235.98, 1)", "4,235.98"),
        ("CONVERT(varchar(20), $4235.98, 2)", "4235.9800"),
        ("CONVERT(varchar(30), 0.5E0)", "0.5"),
        ("CONVERT(varchar(30), 1234567.0E0)", "1.23457e+006"),
        ("CONVERT(varchar(30), 1234567.0E0, 1)", "1.2345670e+006"),
        ("CONVERT(varchar(30), 1234567.0E0, 2)", "1.234567000000000e+006"),
        ("CONVERT(char(8), 0x4E616d65, 0)", "Name    "),
        ("CONVERT(varchar(10), 0x4E616d65, 1)", "0x4E616D65"),
        ("CONVERT(varchar(10), 0x4E616d65, 2)", "4E616D65"),
        ("CONVERT(binary(4), '0x4E616D65', 1)", "0x4E616D65"),
        ("CONVERT(varbinary(4), '4E616D65', 2)", "0x4E616D65"),
        ("CONVERT(binary(8), 'Name', 0)", "0x4E616D6500000000"),
        ("CONVERT(varbinary(8), 258)", "0x00000102"),
        ("CONVERT(int, 0x0102)", "258"),
        (
            "CONVERT(uniqueidentifier, '0e984725-c51c-4bf4-9960-e1c80e27aba0')",
            "0E984725-C51C-4BF4-9960-E1C80E27ABA0",
        ),
        (
            "CONVERT(uniqueidentifier, 0x2547980E1CC5F44B9960E1C80E27ABA0)",
            "0E984725-C51C-4BF4-9960-E1C80E27ABA0",
        ),
        ("TRY_CONVERT(int, 'abc')", "NULL"),
        ("TRY_CAST('12' AS int)", "12"),
        ("TRY_CONVERT(date, '2014-02-30')", "NULL"),
        ("CAST(N'a>b' AS xml)", "a&gt;b"),
    ]);
}

/// "HASHBYTES", digests of "abc": RFC 1321 A.5, FIPS 180-4 examples.
#[test]
fn digests() {
    Session::new().values(&[
        ("HASHBYTES('MD5', 'abc')", "0x900150983CD24FB0D6963F7D28E17F72"),
        ("HASHBYTES('SHA1', 'abc')", "0xA9993E364706816ABA3E25717850C26C9CD0D89D"),
        (
            "HASHBYTES('SHA2_256', 'abc')",
            "0xBA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
        ),
        ("HASHBYTES('other', 'abc')", "NULL"),
        ("IIF(HASHBYTES('SHA2_256', N'abc') = HASHBYTES('SHA2_256', 'abc'), 1, 0)", "0"),
    ]);
}

/// "FORMAT (Transact-SQL)" and .NET's "Standard numeric format strings", "Custom numeric format strings".
#[test]
fn formats_of_numbers() {
    Session::new().values(&[
        ("FORMAT(1234.567, 'N')", "1,234.57"),
        ("FORMAT(1234, 'N0')", "1,234"),
        ("FORMAT(-1234.5, 'N1')", "-1,234.5"),
        ("FORMAT(123.456, 'C', 'en-us')", "$123.46"),
        ("FORMAT(0.256, 'P1')", "25.6%"),
        ("FORMAT(7, 'D3')", "007"),
        ("FORMAT(255, 'X4')", "00FF"),
        ("FORMAT(1234.5, '#,##0.00')", "1,234.50"),
        ("FORMAT(0.5, '#.##')", ".5"),
        ("FORMAT(123456789, '###-##-####')", "123-45-6789"),
        ("FORMAT(0.126, '0.0%')", "12.6%"),
        ("FORMAT(-5, '0;(0);zero')", "(5)"),
        ("FORMAT(0, '0;(0);zero')", "zero"),
    ]);
}

/// "CHOOSE", "IIF", "COALESCE", "ISNULL", "NULLIF", and functions that the server answers.
#[test]
fn choices_and_the_server() {
    Session::new().values(&[
        ("CHOOSE(3, 'Manager', 'Director', 'Developer', 'Tester')", "Developer"),
        ("CHOOSE(9, 'a', 'b')", "NULL"),
        ("IIF(45 > 30, 'TRUE', 'FALSE')", "TRUE"),
        ("COALESCE(NULL, 1, 2.55)", "1.00"),
        ("ISNULL(CAST(NULL AS varchar(3)), 'abcdef')", "abc"),
        ("NULLIF(5, 5)", "NULL"),
        ("NULLIF(5, 5.0)", "NULL"),
        ("NULLIF(5, '6')", "5"),
        ("NULLIF('a ', 'A')", "NULL"),
        ("NULLIF('A' COLLATE Latin1_General_BIN, 'a')", "A"),
        ("NULLIF(5, NULL)", "5"),
        ("NULLIF(CAST('20141003' AS datetime), '2014-10-03')", "NULL"),
        ("CASE 'a ' WHEN 'b' THEN 1 WHEN 'A' THEN 2 END", "2"),
        ("CASE 2 WHEN 1.5 THEN 'a' WHEN 2 THEN 'b' END", "b"),
        ("IIF('B ' BETWEEN 'a' AND 'b', 1, 0)", "1"),
        ("IIF('b' COLLATE Latin1_General_BIN BETWEEN 'A' AND 'B', 1, 0)", "0"),
        ("IIF(5 BETWEEN 1 AND 5.5, 1, 0)", "1"),
        ("CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", "b"),
        ("CASE WHEN NULL = NULL THEN 1 ELSE 0 END", "0"),
        ("DB_NAME()", "master"),
        ("DB_NAME(5)", "awHDD"),
        ("DB_ID('awHDD')", "5"),
        ("@@ROWCOUNT + 1", "8"),
        ("SCOPE_IDENTITY()", "12"),
        ("IIF(SERVERPROPERTY('EngineEdition') = 3, 'Enterprise', 'other')", "Enterprise"),
        ("CURRENT_USER", "dbo"),
        ("ERROR_NUMBER()", "NULL"),
        ("LEN(NEWID())", "36"),
        ("IIF(RAND() > 0 AND RAND() < 1, 1, 0)", "1"),
    ]);
}
