//! Messages that queries meet: their names, types, clauses and functions.

rows! {
    102, 15, INCORRECT_SYNTAX = "Incorrect syntax near '{word}'.";
    102, 15, INCORRECT_SYNTAX_AT_KEYWORD = "Incorrect syntax near the keyword '{keyword}'.";
    104, 16, ORDER_BY_OF_UNION =
        "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT \
         operator.";
    107, 15, UNKNOWN_PREFIX =
        "The column prefix '{prefix}' does not match with a table name or alias name used in the query.";
    108, 15, ORDER_BY_POSITION =
        "The ORDER BY position number {position} is out of range of the number of items in the select list.";
    109, 15, FEWER_VALUES =
        "There are more columns in the INSERT statement than values specified in the VALUES clause. The number of values in \
         the VALUES clause must match the number of columns specified in the INSERT statement.";
    110, 15, MORE_VALUES =
        "There are fewer columns in the INSERT statement than values specified in the VALUES clause. The number of values in \
         the VALUES clause must match the number of columns specified in the INSERT statement.";
    116, 16, MORE_THAN_ONE_COLUMN =
        "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.";
    120, 15, FEWER_ITEMS =
        "The select list for the INSERT statement contains fewer items than the insert list. The number of SELECT values \
         must match the number of INSERT columns.";
    121, 15, MORE_ITEMS =
        "The select list for the INSERT statement contains more items than the insert list. The number of SELECT values \
         must match the number of INSERT columns.";
    127, 15, NEGATIVE_TOP = "A TOP N or FETCH rowcount value may not be negative.";
    130, 15, AGGREGATE_IN_AGGREGATE =
        "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";
    137, 15, UNDECLARED = "Must declare the scalar variable \"@{variable}\".";
    141, 15, ASSIGNS_AND_RETRIEVES =
        "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.";
    144, 15, AGGREGATE_IN_GROUP_BY =
        "Cannot use an aggregate or a subquery in an expression used for the group by list of a GROUP BY clause.";
    145, 15, ORDER_BY_OF_DISTINCT =
        "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.";
    147, 15, AGGREGATE_IN_WHERE =
        "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a \
         select list, and the column being aggregated is an outer reference.";
    155, 15, UNKNOWN_DATE_PART = "'{part}' is not a recognized {function} option.";
    158, 15, AGGREGATE_IN_OUTPUT = "An aggregate may not appear in the OUTPUT clause.";
    164, 15, GROUP_BY_WITHOUT_COLUMN =
        "Each GROUP BY expression must contain at least one column that is not an outer reference.";
    168, 15, FLOAT_OUT_OF_RANGE =
        "The floating point value '{digits}' is out of the range of computer representation (8 bytes).";
    174, 15, ARGUMENTS_EXPECTED = "The {function} function requires {count} argument(s).";
    189, 15, ARGUMENTS_EXPECTED_BETWEEN =
        "The {function} function requires {least} to {most} arguments.";
    194, 15, INTO_ASSIGNS =
        "A SELECT INTO statement cannot contain a SELECT statement that assigns values to a variable.";
    195, 15, UNKNOWN_FUNCTION = "'{name}' is not a recognized built-in function name.";
    196, 15, INTO_NOT_FIRST =
        "SELECT INTO must be the first query in a statement containing a UNION, INTERSECT or EXCEPT operator.";
    205, 16, UNEQUAL_COLUMNS =
        "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in \
         their target lists.";
    207, 16, UNKNOWN_COLUMN = "Invalid column name '{name}'.";
    208, 16, UNKNOWN_OBJECT = "Invalid object name '{name}'.";
    209, 16, AMBIGUOUS_COLUMN = "Ambiguous column name '{name}'.";
    213, 16, VALUES_DO_NOT_MATCH =
        "Column name or number of supplied values does not match table definition.";
    214, 16, PARAMETER_TYPE = "Procedure expects parameter '{parameter}' of type '{data_type}'.";
    216, 16, PARAMETERS_NOT_SUPPLIED = "Parameters were not supplied for the function '{name}'.";
    239, 16, EXPRESSION_NAMED_TWICE =
        "Duplicate common table expression name '{name}' was specified.";
    240, 16, RECURSIVE_TYPES_DIFFER =
        "Types don't match between the anchor and the recursive part in column \"{column}\" of recursive query \
         \"{expression}\".";
    252, 16, RECURSIVE_WITHOUT_UNION =
        "Recursive common table expression '{name}' does not contain a top-level UNION ALL operator.";
    257, 16, NO_IMPLICIT_CONVERSION =
        "Implicit conversion from data type {from} to {to} is not allowed. Use the CONVERT function to run this query.";
    258, 15, NO_METHODS = "Cannot call methods on {type}.";
    259, 16, CATALOG_CHANGED = "Ad hoc updates to system catalogs are not allowed.";
    263, 16, NO_TABLE = "Must specify table to select from.";
    264, 16, ASSIGNED_TWICE =
        "The column name '{column}' is specified more than once in the SET clause or column list of an INSERT. A \
         column cannot be assigned more than one value in the same clause. Modify the clause to make sure that a \
         column is updated only once. If this statement updates or inserts columns into a view, column aliasing can \
         conceal the duplication in your code.";
    289, 16, NO_SUCH_MOMENT =
        "Cannot construct data type {data_type}, some of the arguments have values which are not valid.";
    305, 16, XML_NOT_COMPARED =
        "The XML data type cannot be compared or sorted, except when using the IS NULL operator.";
    310, 15, MAXRECURSION_TOO_LARGE =
        "The value {most} specified for the MAXRECURSION option exceeds the allowed maximum of 32767.";
    339, 16, IDENTITY_NULL = "DEFAULT or NULL are not allowed as explicit identity values.";
    408, 16, ORDER_BY_CONSTANT =
        "A constant expression was encountered in the ORDER BY list, position 1.";
    421, 16, XML_NOT_DISTINCT =
        "The xml data type cannot be selected as DISTINCT because it is not comparable.";
    447, 16, NOT_COLLATED = "Expression type {data_type} is invalid for COLLATE clause.";
    448, 16, UNKNOWN_COLLATION = "Invalid collation '{collation}'.";
    484, 16, XML_NODES_WITHOUT_ALIAS =
        "The table (and its columns) returned by a table-valued method need to be aliased.";
    493, 16, XML_NODE_ALONE =
        "The column '{column}' that was returned from the nodes() method cannot be used directly. It can only be used with \
         one of the four XML data type methods, exist(), nodes(), query(), and value(), or in IS NULL and IS NOT NULL \
         checks.";
    506, 16, BAD_ESCAPE =
        "The invalid escape character \"{escape}\" was specified in a LIKE predicate.";
    512, 16, MORE_THAN_ONE_ROW =
        "Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or \
         when the subquery is used as an expression.";
    515, 16, NULL_REFUSED =
        "Cannot insert the value NULL into column '{column}', table '{table}'; column does not allow nulls. \
         {statement} fails.";
    517, 16, DATE_OVERFLOW = "Adding a value to a '{data_type}' column caused an overflow.";
    530, 16, RECURSION_EXHAUSTED =
        "The statement terminated. The maximum recursion {most} has been exhausted before statement completion.";
    535, 16, DATEDIFF_OVERFLOW =
        "The datediff function resulted in an overflow. The number of dateparts separating two date/time instances is \
         too large. Try to use datediff with a less precise datepart.";
    536, 16, BAD_RIGHT = "Invalid length parameter passed to the RIGHT function.";
    537, 16, BAD_LENGTH = "Invalid length parameter passed to the LEFT or SUBSTRING function.";
    544, 16, IDENTITY_INSERT_OFF =
        "Cannot insert explicit value for identity column in table '{table}' when IDENTITY_INSERT is set to OFF.";
    545, 16, IDENTITY_WITHOUT_VALUE =
        "Explicit value must be specified for identity column in table '{table}' either when IDENTITY_INSERT is set to \
         ON or when a replication user is inserting into a NOT FOR REPLICATION identity column.";
    547, 16, CONFLICT =
        "The {statement} statement conflicted with the {kind} constraint \"{constraint}\". The conflict occurred in \
         database \"{database}\", table \"{table}\"{column}.";
    547, 16, CONFLICT_OF_ANY =
        "The {statement} statement conflicted with a FOREIGN KEY constraint of table \"{table}\" in database \"{database}\".";
    1007, 15, DECIMAL_OUT_OF_RANGE =
        "The number '{digits}' is out of the range for numeric representation (maximum precision 38).";
    1008, 16, ORDER_BY_VARIABLE =
        "The SELECT item identified by the ORDER BY number 1 contains a variable as part of the expression identifying \
         a column position. Variables are only allowed when ordering by an expression referencing a column name.";
    1011, 15, CORRELATION_NAMED_TWICE =
        "The correlation name '{name}' is specified multiple times in a FROM clause.";
    1023, 15, BAD_PARAMETER = "Invalid parameter 1 specified for {function}.";
    1033, 15, ORDER_BY_IN_SUBQUERY =
        "The ORDER BY clause is invalid in views, inline functions, derived tables, subqueries, and common table \
         expressions, unless TOP, OFFSET or FOR XML is also specified.";
    1054, 15, STAR_BOUND_TO_SCHEMA = "Syntax '*' is not allowed in schema-bound objects.";
    1060, 15, TOP_NOT_INTEGER =
        "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.";
    1062, 15, TIES_WITHOUT_ORDER_BY =
        "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.";
    1086, 15, XML_OF_SETS =
        "The FOR XML and FOR JSON clauses are invalid in views, inline functions, derived tables, and subqueries when \
         they contain a set operator. To work around, wrap the SELECT containing a set operator using derived table or \
         common table expression or view and apply FOR XML or FOR JSON on top of it.";
    1087, 15, UNDECLARED_TABLE = "Must declare the table variable \"@{variable}\".";
    2389, 16, XML_NOT_SINGLE =
        "XQuery [value()]: 'value()' requires a singleton (or empty sequence), found operand of type 'xdt:untypedAtomic *'";
    2601, 14, DUPLICATE_IN_INDEX =
        "Cannot insert duplicate key row in object '{table}' with unique index '{index}'.{value}";
    2627, 14, DUPLICATE_KEY =
        "Violation of {kind} constraint '{constraint}'. Cannot insert duplicate key in object '{table}'.{value}";
    2628, 16, TRUNCATED =
        "String or binary data would be truncated in table '{table}', column '{column}'. Truncated value: '{cut}'.";
    3621, 10, STATEMENT_TERMINATED = "The statement has been terminated.";
    3623, 16, BAD_FLOAT_OPERATION = "An invalid floating point operation occurred.";
    4103, 15, TEMPORARY_VIEW = "\"{name}\": Temporary views are not allowed.";
    4104, 16, UNBOUND = "The multi-part identifier \"{name}\" could not be bound.";
    4108, 15, WINDOW_OUTSIDE_SELECT =
        "Windowed functions can only appear in the SELECT or ORDER BY clauses.";
    4109, 15, WINDOW_IN_WINDOW =
        "Windowed functions cannot be used in the context of another windowed function or aggregate.";
    4112, 15, ORDER_BY_EXPECTED =
        "The function '{function}' must have an OVER clause with ORDER BY.";
    4121, 16, UNKNOWN_COLUMN_OR_FUNCTION =
        "Cannot find either column \"{column}\" or the user-defined function or aggregate \"{function}\", or the name \
         is ambiguous.";
    4127, 16, COALESCE_OF_NULLS =
        "At least one of the arguments to COALESCE must be an expression that is not the NULL constant.";
    4151, 16, NULLIF_OF_NULL =
        "The type of the first argument to NULLIF cannot be the NULL constant because the type of the first argument \
         has to be known.";
    4193, 16, BAD_FRAME = "'BETWEEN ... AND ...' is not a valid window frame.";
    4194, 16, RANGE_LIMITED =
        "RANGE is only supported with UNBOUNDED and CURRENT ROW window frame delimiters.";
    4406, 16, DERIVED_FIELD =
        "Update or insert of view or function '{name}' failed because it contains a derived or constant field.";
    4413, 16, VIEW_NOT_BOUND = "Could not use view or function '{view}' because of binding errors.";
    4429, 16, VIEW_OF_ITSELF =
        "View or function '{view}' contains a self-reference. Views or functions cannot reference themselves directly \
         or indirectly.";
    4506, 16, VIEW_COLUMN_TWICE =
        "Column names in each view or function must be unique. Column name '{column}' in view or function '{view}' is \
         specified more than once.";
    4508, 16, VIEW_OF_TEMPORARY =
        "Views or functions are not allowed on temporary tables. Table names that begin with '#' denote temporary \
         tables.";
    4511, 16, VIEW_COLUMN_WITHOUT_NAME =
        "Create View or Function failed because no column name was specified for column {position}.";
    4512, 16, NOT_BOUND_TO_SCHEMA =
        "Cannot schema bind view '{view}' because name '{name}' is invalid for schema binding. Names must be in \
         two-part format and an object cannot reference itself.";
    5308, 16, ORDER_BY_INDEX_IN_WINDOW =
        "Windowed functions, aggregates and NEXT VALUE FOR functions do not support integer indices as ORDER BY clause \
         expressions.";
    5335, 16, XML_IN_UNION =
        "The data type xml cannot be used as an operand to the UNION, INTERSECT or EXCEPT operators because it is not \
         comparable.";
    6809, 16, XML_UNNAMED =
        "Unnamed tables cannot be used as XML identifiers as well as unnamed columns cannot be used for attribute names. \
         Name unnamed columns/tables using AS in the SELECT statement.";
    6819, 16, XML_NOT_IN =
        "The FOR XML and FOR JSON clauses are not allowed in a {statement} statement.";
    6841, 16, XML_CHARACTER =
        "FOR XML could not serialize the data for node 'NoName' because it contains a character (0x{code}) which is not \
         allowed in XML. To retrieve this data using FOR XML, convert it to binary, varbinary or image data type and \
         use the BINARY BASE64 directive.";
    6850, 16, XML_NAME =
        "{what} name '{name}' contains an invalid XML identifier as required by FOR XML; '{character}'(0x{code}) is the \
         first character at fault.";
    6852, 16, XML_ATTRIBUTE_LATE =
        "Attribute-centric column '{name}' must not come after a non-attribute-centric sibling in XML hierarchy in FOR \
         XML PATH.";
    6861, 16, XML_EMPTY_ROOT = "Empty root tag name can't be specified with FOR XML.";
    6864, 16, XML_ATTRIBUTE_OF_NOTHING =
        "Row tag omission (empty row tag name) cannot be used with attribute-centric FOR XML serialization.";
    7119, 16, LOB_TOO_LARGE =
        "Attempting to grow LOB beyond maximum allowed size of {bytes_most} bytes.";
    8101, 16, IDENTITY_WITHOUT_LIST =
        "An explicit value for the identity column in table '{table}' can only be specified when a column list is used \
         and IDENTITY_INSERT is ON.";
    8102, 16, IDENTITY_UPDATED = "Cannot update identity column '{column}'.";
    8106, 16, NO_IDENTITY =
        "Table '{table}' does not have the identity property. Cannot perform SET operation.";
    8107, 16, IDENTITY_INSERT_ELSEWHERE =
        "IDENTITY_INSERT is already ON for table '{other}'. Cannot perform SET operation for table '{table}'.";
    8111, 16, NULLABLE_KEY =
        "Cannot define PRIMARY KEY constraint on nullable column in table '{table}'.";
    8116, 16, BAD_ARGUMENT =
        "Argument data type {data_type} is invalid for argument {number} of {function} function.";
    8120, 16, NOT_GROUPED_IN_SELECT =
        "Column '{column}' is invalid in the select list because it is not contained in either an aggregate function \
         or the GROUP BY clause.";
    8121, 16, NOT_GROUPED_IN_HAVING =
        "Column '{column}' is invalid in the HAVING clause because it is not contained in either an aggregate function \
         or the GROUP BY clause.";
    8127, 16, NOT_GROUPED_IN_ORDER_BY =
        "Column '{column}' is invalid in the ORDER BY clause because it is not contained in either an aggregate \
         function or the GROUP BY clause.";
    8133, 16, CASE_OF_NULLS =
        "At least one of the result expressions in a CASE specification must be an expression other than the NULL \
         constant.";
    8134, 16, DIVISION_BY_ZERO = "Divide by zero error encountered.";
    8153, 10, NULL_ELIMINATED =
        "Warning: Null value is eliminated by an aggregate or other SET operation.";
    8154, 16, AMBIGUOUS_TABLE = "The table '{table}' is ambiguous.";
    8155, 16, COLUMN_WITHOUT_NAME =
        "No column name was specified for column {position} of '{table}'.";
    8156, 16, COLUMN_NAMED_TWICE =
        "The column '{column}' was specified multiple times for '{table}'.";
    8158, 16, MORE_COLUMNS = "'{table}' has more columns than were specified in the column list.";
    8159, 16, FEWER_COLUMNS = "'{table}' has fewer columns than were specified in the column list.";
    8167, 16, UNPIVOT_TYPES =
        "The type of column \"{column}\" conflicts with the type of other columns specified in the UNPIVOT list.";
    8623, 16, PLAN_TOO_LARGE =
        "The query processor ran out of internal resources and could not produce a query plan. This is a rare event \
         and only expected for extremely complex queries or queries that reference a very large number of tables or \
         partitions. Please simplify the query. If you believe you have received this message in error, contact \
         Customer Support Services for more information.";
    9810, 16, DATE_PART_REFUSED =
        "The datepart {part} is not supported by date function {function} for data type {data_type}.";
    9828, 16, TRANSLATE_LENGTHS_DIFFER =
        "The second and third arguments of the TRANSLATE built-in function must contain an equal number of characters.";
    10705, 15, QUERY_IN_OUTPUT = "Subqueries are not allowed in the OUTPUT clause.";
    10709, 16, UNEQUAL_ROWS =
        "The number of columns for each row in a table value constructor must be the same.";
    10741, 15, TOP_WITH_OFFSET =
        "A TOP can not be used in the same query or sub-query as a OFFSET.";
    10742, 15, NEGATIVE_OFFSET = "The offset specified in a OFFSET clause may not be negative.";
    10744, 15, FETCH_NOT_POSITIVE =
        "The number of rows provided for a FETCH clause must be greater then zero.";
    10752, 15, FRAME_REFUSED = "The function '{function}' may not have a window frame.";
    10753, 15, OVER_EXPECTED = "The function '{function}' must have an OVER clause.";
    10753, 15, OVER_REFUSED = "The function '{function}' cannot be used with an OVER clause.";
    10756, 15, FRAME_WITHOUT_ORDER_BY =
        "Window frame with ROWS or RANGE must have an ORDER BY clause.";
    10759, 15, DISTINCT_WITH_OVER = "Use of DISTINCT is not allowed with the OVER clause.";
}
