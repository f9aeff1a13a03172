//! Goal: a view is a sub-select of the query that names it, and sees nothing of that query. Method: a catalog that notes
//! which names it is asked for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pellucid_sql::message::{Message, Result};
use pellucid_sql::translate::{Catalog, Table, TableColumn, Translator, ViewDefinition};
use pellucid_sql::values::convert::Value;
use pellucid_sql::values::types::SqlType;
use pellucid_tsql::ast::{Name, ObjectName, ObjectStatement, Query, StatementKind};
use pellucid_tsql::parse;

use crate::server::Declared;

#[derive(Default)]
struct Views {
    views: HashMap<String, ViewDefinition>,
    asked: RefCell<Vec<String>>,
    failed: RefCell<Vec<String>>,
}

impl Views {
    fn with(mut self, database: &str, text: &str, ansi_nulls: bool) -> Self {
        let StatementKind::Object(ObjectStatement::View(view)) =
            parse(text).unwrap().remove(0).kind
        else {
            panic!("{text}")
        };
        let name = view.name.object.as_str().to_owned();
        let database = Name::new(database).unwrap();
        let definition =
            ViewDefinition { database, view: Rc::new(view), ansi_nulls, bytes: text.len() };
        self.views.insert(name, definition);
        self
    }
}

impl Catalog for Views {
    fn table(&self, name: &ObjectName) -> Result<Option<Table>> {
        let database = name.database.as_ref().map_or("-", Name::as_str);
        let object = name.object.as_str();
        self.asked.borrow_mut().push(format!("{database}.{object}"));
        let columns =
            vec![TableColumn::new("a", SqlType::Int), TableColumn::new("b", SqlType::Int)];
        let table = Table { sqlite: object.to_owned(), columns, row: Some("rowid".to_owned()) };
        Ok(object.starts_with('t').then_some(table))
    }

    fn view(&self, name: &ObjectName) -> Result<Option<ViewDefinition>> {
        Ok(self.views.get(name.object.as_str()).cloned())
    }

    fn view_failed(&self, name: &ObjectName, found: &Message) {
        let name = name.object.as_str();
        self.failed.borrow_mut().push(format!("{name} {}", found.number));
    }

    fn table_variable(&self, _: &str) -> Option<Table> {
        self.table(&Name::new("t").unwrap().into()).unwrap()
    }
}

fn query(text: &str) -> Query {
    match parse(text).unwrap().remove(0).kind {
        StatementKind::Select(query) => *query,
        other => panic!("{other:?}"),
    }
}

fn translated(views: &Views, text: &str) -> Result<String> {
    let mut variables = Declared::default();
    variables.0.insert("v".to_owned(), (SqlType::Int, Value::Integer(1)));
    Translator::new(views, &variables).query(&query(text)).map(|statement| statement.sql)
}

#[test]
fn names_within_are_those_of_its_database() {
    let views = Views::default()
        .with("one", "CREATE VIEW v AS SELECT a FROM t JOIN w ON w.b = t.b", true)
        .with("two", "CREATE VIEW w (b) AS SELECT a FROM t2 UNION SELECT b FROM three..t3", true);
    translated(&views, "SELECT v.a, t.b FROM t, one..v").unwrap();
    let asked = views.asked.take();
    assert_eq!(asked, ["-.t", "one.v", "one.t", "one.w", "two.t2", "three.t3"]);
}

#[test]
fn it_is_a_sub_select() {
    let views =
        Views::default().with("d", "CREATE VIEW v (x) AS SELECT b FROM t WHERE a = 1", true);
    assert_eq!(
        translated(&views, "SELECT x FROM v WHERE x > @v").unwrap(),
        "SELECT t2.c1 AS c1 FROM (SELECT t1.\"b\" AS c1 FROM t AS t1 WHERE (t1.\"a\" = 1)) AS t2 WHERE (t2.c1 > ?1)"
    );
}

#[test]
fn nothing_around_is_seen_within() {
    for (text, number) in [
        ("CREATE VIEW v AS SELECT @v AS a", 137),
        ("CREATE VIEW v AS SELECT a FROM @t", 1087),
        ("CREATE VIEW v AS SELECT a FROM common", 208),
        ("CREATE VIEW v AS SELECT t9.a FROM t", 4104),
        ("CREATE VIEW v AS SELECT a FROM #t", 4508),
    ] {
        let views = Views::default().with("d", text, true);
        let around =
            "WITH common AS (SELECT 1 AS a) SELECT * FROM t9 WHERE EXISTS (SELECT * FROM v)";
        let found = translated(&views, around).unwrap_err();
        assert_eq!(found.number, number, "{text}\n{found:?}");
        assert_eq!(views.failed.take(), [format!("v {number}")], "{text}");
    }
}

/// What is around again has its own.
#[test]
fn what_is_around_goes_on() {
    let views =
        Views::default().with("d", "CREATE VIEW v AS SELECT a FROM t WHERE b = NULL", false);
    let around = "SELECT v.a FROM v WHERE v.a = NULL AND EXISTS (SELECT * FROM t2 WHERE t2.a = @v)";
    let sql = translated(&views, around).unwrap();
    assert!(sql.contains("t1.\"b\" IS NULL"), "{sql}");
    assert!(sql.contains("(t2.c1 = NULL)") && sql.contains("?1"), "{sql}");
    assert_eq!(views.asked.take(), ["-.v", "d.t", "-.t2"]);
}

#[test]
fn it_is_not_changed_nor_one_of_itself() {
    let views = Views::default().with("d", "CREATE VIEW v AS SELECT a FROM w", true).with(
        "d",
        "CREATE VIEW w AS SELECT a FROM dbo.V UNION ALL SELECT a FROM d.dbo.v",
        true,
    );
    let found = translated(&views, "SELECT * FROM v").unwrap_err();
    // The catalog knows `V` by another name.
    assert_eq!(found.number, 208);
    let views = Views::default().with("d", "CREATE VIEW v AS SELECT a FROM d.dbo.v", true);
    assert_eq!(translated(&views, "SELECT * FROM v").unwrap_err().number, 4429);
    let variables = Declared::default();
    for text in ["INSERT v VALUES (1)", "UPDATE v SET a = 1", "DELETE v FROM v"] {
        let translator = Translator::new(&views, &variables);
        let done = match parse(text).unwrap().remove(0).kind {
            StatementKind::Insert(insert) => translator.insert(&insert),
            StatementKind::Update(update) => translator.update(&update),
            StatementKind::Delete(delete) => translator.delete(&delete),
            other => panic!("{other:?}"),
        };
        assert!([50_001, 4429].contains(&done.unwrap_err().number), "{text}");
    }
}
