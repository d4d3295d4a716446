//! The language at the level of words: a dialect for the `sqlparser` crate, and a check of what may reach its parser.
//!
//! Invariant: tokens that pass [`check_tokens`] give no tree deeper than [`OPERATORS_MAX`] and no construct on which
//! the parser would backtrack at length.

use std::any::TypeId;

use sqlparser::ast::{Expr as Sql, Ident};
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::names::{clip, is_reserved};
use crate::base::{Error, Result};

/// The deepest nesting of a tree.
pub const DEPTH_MAX: usize = 28;

/// Nested calls of the parser, of about 6 KiB of stack each: up to two per level of nesting, and some for redundant
/// parentheses.
pub const PARSER_DEPTH_MAX: usize = 64;

/// Operators, keywords and parentheses in one filter, less one comparison per term. The parser drops its tree by
/// recursion, with one small frame for each.
pub const OPERATORS_MAX: usize = 4_000;

/// SQL expressions in which every word that the grammar does not need is a column.
#[derive(Debug)]
pub struct FilterDialect;

impl Dialect for FilterDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<Self>()
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '"'
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_'
    }

    /// Words: the parser's own rules know hundreds of functions and types, which are column names here.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<std::result::Result<Sql, ParserError>> {
        let found = parser.peek_token_ref();
        let Token::Word(word) = &found.token else { return None };
        let (start, quoted) = (found.span.start, word.quote_style.is_some());
        let next = &parser.peek_nth_token_ref(1).token;
        if !quoted {
            match word.keyword {
                Keyword::NOT | Keyword::NULL | Keyword::TRUE | Keyword::FALSE => return None,
                Keyword::DATE | Keyword::TIME | Keyword::TIMESTAMP | Keyword::DOUBLE | Keyword::INTERVAL
                    if matches!(next, Token::SingleQuotedString(_)) =>
                {
                    return None;
                }
                Keyword::TIMESTAMP | Keyword::TIME if matches!(next, Token::Word(next) if matches!(next.keyword, Keyword::WITH | Keyword::WITHOUT)) =>
                {
                    return None;
                }
                _ => {}
            }
        }
        let problem = match next {
            Token::LParen => "functions are not part of the filter language",
            Token::SingleQuotedString(_) => "expected an operator before the string that follows it",
            _ if !quoted && is_reserved(&word.value) => {
                "expected a column, a literal or `(` here (quote a column of this name)"
            }
            _ => {
                let name = Ident { value: word.value.clone(), quote_style: word.quote_style, span: found.span };
                parser.advance_token();
                return Some(Ok(Sql::Identifier(name)));
            }
        };
        Some(Err(ParserError::ParserError(format!("`{}`: {problem}{start}", word.value))))
    }
}

/// Refuses tokens outside the language, and more of them than the maximum depth of the parser's tree.
pub fn check_tokens(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut operators = 0usize;
    let mut depth = 0usize;
    // Whether the next comparison is the first of its term: then it is beside the previous terms in the tree, not above
    // them.
    let mut first = true;
    for found in tokens {
        match &found.token {
            Token::Whitespace(_)
            | Token::EOF
            | Token::Comma
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::HexStringLiteral(_) => {}
            Token::Word(word) if word.keyword == Keyword::NoKeyword => {}
            Token::LParen => {
                depth += 1;
                operators += 1;
                first = true;
            }
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Eq | Token::DoubleEq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq => {
                operators += usize::from(!std::mem::take(&mut first));
            }
            Token::Word(word) => {
                operators += 1;
                first |= matches!(word.keyword, Keyword::AND | Keyword::OR);
            }
            Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::Period => operators += 1,
            other => {
                let hint = match other {
                    Token::Ampersand | Token::Overlap => "; and is written `and`",
                    Token::Pipe | Token::StringConcat => "; or is written `or`",
                    Token::ExclamationMark | Token::Tilde => "; not is written `not`",
                    Token::Placeholder(_) => "; a parameter needs its value (params)",
                    _ => "",
                };
                let other = clip(&other.to_string());
                return Err(Error::invalid(format!(
                    "`{other}` is not part of the filter language{hint}{}",
                    found.span.start
                )));
            }
        }
        if depth > PARSER_DEPTH_MAX {
            return Err(Error::invalid(format!(
                "it is nested too deeply{}; expected at most {DEPTH_MAX} levels",
                found.span.start
            )));
        }
        if operators > OPERATORS_MAX {
            return Err(Error::invalid(format!(
                "there are more than {OPERATORS_MAX} operators{}; for many values of a column, write `in (...)`",
                found.span.start
            )));
        }
    }
    Ok(())
}
