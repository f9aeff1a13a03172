//! FOR XML, and what is asked of xml.

use super::Parser;
use crate::ast::{Expression, ForXml, TablePrimary, XmlAsked, XmlMethod, XmlMode};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

/// Methods one behind another at most: each holds all before it.
const LINKS_MOST: usize = 4;

impl Parser<'_> {
    /// `XML {PATH | RAW} [('element')] [, TYPE] [, ROOT [('root')]] [, ELEMENTS]`
    pub(super) fn for_xml(&mut self) -> Result<ForXml> {
        self.require(K::XML)?;
        let mode = self.word_in_capitals();
        let is_raw = mode == "RAW";
        if mode != "PATH" && !is_raw {
            return match mode.as_str() {
                "AUTO" | "EXPLICIT" => self.unsupported(format!("FOR XML {mode}")),
                _ => self.unexpected(),
            };
        }
        self.advance();
        let element = self.xml_name("row")?;
        let mode = if is_raw { XmlMode::Raw } else { XmlMode::Path };
        let mut xml = ForXml { element, typed: false, root: None, mode };
        while self.accept_symbol(Symbol::Comma) {
            let directive = self.word_in_capitals();
            match directive.as_str() {
                "TYPE" if !xml.typed => {
                    self.advance();
                    xml.typed = true;
                }
                "ROOT" if xml.root.is_none() => {
                    self.advance();
                    xml.root = Some(self.xml_name("root")?);
                }
                "ELEMENTS" => {
                    self.advance();
                    // PATH makes elements by itself.
                    if is_raw {
                        xml.mode = XmlMode::RawElements;
                    }
                    match self.word_in_capitals().as_str() {
                        "XSINIL" => return self.unsupported("FOR XML with ELEMENTS XSINIL"),
                        "ABSENT" => drop(self.advance()),
                        _ => {}
                    }
                }
                "BINARY" | "XMLSCHEMA" | "XMLDATA" => {
                    return self.unsupported(format!("FOR XML with {directive}"))
                }
                _ => return self.unexpected(),
            }
        }
        Ok(xml)
    }

    /// The word that is here; empty if it is none.
    fn word_in_capitals(&self) -> String {
        match self.current.kind {
            TokenKind::Name | TokenKind::Keyword(_) => self.text(self.current).to_ascii_uppercase(),
            _ => String::new(),
        }
    }

    /// `('name')`, or the name without it.
    fn xml_name(&mut self, default: &str) -> Result<String> {
        if !self.accept_symbol(Symbol::LeftParenthesis) {
            return Ok(default.to_owned());
        }
        let name = self.string()?.text;
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(name)
    }

    /// `operand.value('path', 'type')` and its like, or `operand` if no method of it follows.
    pub(super) fn xml_methods(&mut self, mut operand: Expression) -> Result<Expression> {
        // Parentheses around some of them do not shorten it.
        let mut links = 0;
        let mut inner = &operand;
        while let Expression::XmlMethod(method) = inner {
            links += 1;
            inner = &method.operand;
        }
        while self.at_symbol(Symbol::Dot) {
            links += 1;
            if links > LINKS_MOST {
                return self.fail(ErrorKind::TooDeep);
            }
            operand = self.nested(|p| p.xml_method(operand))?;
        }
        Ok(operand)
    }

    fn xml_method(&mut self, operand: Expression) -> Result<Expression> {
        self.advance();
        let method = self.text(self.current);
        if !["value", "query", "exist"].contains(&method) {
            return match self.at_name() {
                true => self.unsupported(format!("the method {method} of xml")),
                false => self.unexpected(),
            };
        }
        let is_value = method == "value";
        let is_query = method == "query";
        self.advance();
        self.require_symbol(Symbol::LeftParenthesis)?;
        let path = self.string()?;
        let asked = match (is_value, is_query) {
            (true, _) => {
                self.require_symbol(Symbol::Comma)?;
                XmlAsked::Value(self.string()?)
            }
            (_, true) => XmlAsked::Query,
            _ => XmlAsked::Exist,
        };
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(Expression::XmlMethod(Box::new(XmlMethod { operand, asked, path })))
    }

    /// `.nodes('path') AS a (column)` behind a variable in FROM
    pub(super) fn nodes(&mut self) -> Result<TablePrimary> {
        let variable = self.variable()?;
        self.require_symbol(Symbol::Dot)?;
        if self.text(self.current) != "nodes" {
            return self.unsupported("method of a variable");
        }
        self.advance();
        self.require_symbol(Symbol::LeftParenthesis)?;
        let path = self.string()?;
        self.require_symbol(Symbol::RightParenthesis)?;
        let alias = self.table_alias()?;
        Ok(TablePrimary::Nodes { variable, path, alias })
    }
}
