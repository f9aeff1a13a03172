//! Cursors.

use pellucid_tsql::ast::{Cursor, CursorName, CursorStatement, Fetch, FetchDirection};

use super::{put, Listed, One, Print, Printer};

impl Print for CursorStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            CursorStatement::Declare { name, cursor } => put!(to, "DECLARE ", name, " ", cursor),
            CursorStatement::Assign { variable, cursor } => {
                put!(to, "SET ", variable, " = ", cursor);
            }
            CursorStatement::Open(cursor) => put!(to, "OPEN ", cursor),
            CursorStatement::Fetch(fetch) => put!(to, "FETCH ", fetch),
            CursorStatement::Close(cursor) => put!(to, "CLOSE ", cursor),
            CursorStatement::Deallocate(cursor) => put!(to, "DEALLOCATE ", cursor),
        }
    }
}

impl Print for Cursor {
    fn print(&self, to: &mut Printer) {
        put!(to, "CURSOR");
        for option in &self.options {
            put!(to, " ", One(*option));
        }
        put!(to, " FOR ", self.query);
        if let Some(columns) = &self.update {
            put!(to, " FOR UPDATE", Listed(" OF ", columns, ""));
        }
    }
}

impl Print for CursorName {
    fn print(&self, to: &mut Printer) {
        match self {
            CursorName::Named { global: true, name } => put!(to, "GLOBAL ", name),
            CursorName::Named { global: false, name } => put!(to, name),
            CursorName::Variable(variable) => variable.print(to),
        }
    }
}

impl Print for Fetch {
    fn print(&self, to: &mut Printer) {
        match &self.direction {
            FetchDirection::Next => put!(to, "NEXT"),
            FetchDirection::Prior => put!(to, "PRIOR"),
            FetchDirection::First => put!(to, "FIRST"),
            FetchDirection::Last => put!(to, "LAST"),
            FetchDirection::Absolute(number) => put!(to, "ABSOLUTE ", number),
            FetchDirection::Relative(number) => put!(to, "RELATIVE ", number),
        }
        put!(to, " FROM ", self.cursor);
        put!(to, Listed(" INTO ", &self.into, ""));
    }
}
