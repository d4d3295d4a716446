//! The language at the level of words: a dialect for the `sqlparser` crate, and a check of what may reach its parser.
//!
//! Invariant: tokens that pass [`check_tokens`] give no tree deeper than [`OPERATORS_MAX`] and no construct on which
//! the parser would backtrack at length.

use std::any::TypeId;

use sqlparser::ast::{
    CastKind, DataType, Expr as Sql, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName,
};
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::functions;
use super::names::{clip, is_reserved};
use super::scalar::ARGUMENTS_MAX;
use crate::base::{Error, Result, parse_type};

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

    fn supports_in_empty_list(&self) -> bool {
        true
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '"' || c == '`'
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
        if *next == Token::LParen && !is_operator(&word.value) {
            let name = word.value.clone();
            let is_function = functions::is_function(&name);
            if quoted || !is_function {
                let problem = match is_function {
                    true => "the name of a function stands without quotes".to_owned(),
                    false => functions::unknown(&name.to_ascii_lowercase()),
                };
                return Some(Err(ParserError::ParserError(format!("`{}`: {problem}{start}", clip(&name)))));
            }
            parser.advance_token();
            parser.advance_token();
            return Some(parse_call(parser, name));
        }
        let problem = match next {
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

/// Words before a parenthesis that are no functions.
fn is_operator(word: &str) -> bool {
    is_reserved(word) && !word.eq_ignore_ascii_case("cast")
}

/// The values of a function, behind its opening parenthesis.
fn parse_call(parser: &mut Parser, name: String) -> std::result::Result<Sql, ParserError> {
    let kind = match name.to_ascii_lowercase().as_str() {
        "cast" => Some(CastKind::Cast),
        "try_cast" => Some(CastKind::TryCast),
        _ => None,
    };
    let mut args = Vec::new();
    while !parser.consume_token(&Token::RParen) {
        if !args.is_empty() && !parser.consume_token(&Token::Comma) {
            return expected(parser, "`,` or `)`");
        }
        args.push(parser.parse_expr()?);
        if let Some(kind) = kind {
            if !parser.parse_keyword(Keyword::AS) {
                return expected(parser, "`as` and a type");
            }
            let cast = cast_to(parser, kind, args.remove(0))?;
            return if parser.consume_token(&Token::RParen) { Ok(cast) } else { expected(parser, "`)`") };
        }
        if args.len() > ARGUMENTS_MAX {
            return Err(ParserError::ParserError(format!("{name}(...) takes at most {ARGUMENTS_MAX} values")));
        }
        if name.eq_ignore_ascii_case("extract") && args.len() == 1 && parser.parse_keyword(Keyword::FROM) {
            args.push(parser.parse_expr()?);
        }
    }
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    let name = if name.eq_ignore_ascii_case("extract") { "date_part".to_owned() } else { name };
    Ok(Sql::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }))
}

/// A type behind `as` or `::`: its words, or its name in single quotes. The tree has its text.
fn cast_to(parser: &mut Parser, kind: CastKind, expr: Sql) -> std::result::Result<Sql, ParserError> {
    let mut text = match &parser.peek_token_ref().token {
        Token::SingleQuotedString(text) => text.clone(),
        Token::Word(word) => word.value.clone(),
        _ => return expected(parser, "a type"),
    };
    let quoted = matches!(parser.peek_token_ref().token, Token::SingleQuotedString(_));
    parser.advance_token();
    if !quoted {
        // Types of more than one word.
        let more: &[&[Keyword]] = &[
            &[Keyword::PRECISION],
            &[Keyword::VARYING],
            &[Keyword::WITH, Keyword::TIME, Keyword::ZONE],
            &[Keyword::WITHOUT, Keyword::TIME, Keyword::ZONE],
        ];
        if let Some(words) = more.iter().find(|words| parser.parse_keywords(words)) {
            words.iter().for_each(|word| text += &format!(" {word:?}").to_lowercase());
        }
        if parser.consume_token(&Token::LParen) {
            text.push('(');
            loop {
                match &parser.peek_token_ref().token {
                    Token::Number(digits, false) => text += digits,
                    _ => return expected(parser, "a number"),
                }
                parser.advance_token();
                if !parser.consume_token(&Token::Comma) {
                    break;
                }
                text.push(',');
            }
            if !parser.consume_token(&Token::RParen) {
                return expected(parser, "`)`");
            }
            text.push(')');
        }
    }
    let data_type = DataType::Custom(ObjectName::from(vec![Ident::new(text)]), Vec::new());
    Ok(Sql::Cast { kind, expr: Box::new(expr), data_type, format: None })
}

fn expected<T>(parser: &Parser, what: &str) -> std::result::Result<T, ParserError> {
    let found = parser.peek_token_ref();
    let (shown, start) = (clip(&found.token.to_string()), found.span.start);
    Err(ParserError::ParserError(format!("expected {what}, found `{shown}`{start}")))
}

/// What is written in place of a token, as the end of a message.
fn in_other_words(token: &Token) -> &'static str {
    match token {
        Token::Ampersand | Token::Overlap => "; and is written `and`",
        Token::StringConcat => "; strings are joined by concat(a, b); or is written `or`",
        Token::Pipe => "; or is written `or`",
        Token::ExclamationMark => "; not is written `not`",
        Token::Tilde => "; texts are compared by like 'A%', starts_with(s, 'A') and contains",
        Token::SemiColon => "; a filter has none at its end",
        Token::Placeholder(_) => "; a parameter needs its value (params)",
        _ => "",
    }
}

/// Refuses tokens outside the language, and more of them than the maximum depth of the parser's tree.
pub fn check_tokens(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut operators = 0usize;
    let mut depth = 0usize;
    // Whether the next comparison is the first of its term: then it is beside the previous terms in the tree, not above
    // them.
    let mut first = true;
    let mut is_type = false;
    let mut casts = 0usize;
    for found in tokens {
        // The parser's types can be nested without a limit, those in one word cannot.
        if std::mem::take(&mut is_type) {
            match &found.token {
                Token::Word(word) if parse_type(&word.value).is_ok() => {}
                other => {
                    return Err(Error::invalid(format!(
                        "expected a type behind `::`, found `{}`{}",
                        clip(&other.to_string()),
                        found.span.start
                    )));
                }
            }
        }
        is_type = found.token == Token::DoubleColon;
        // One cast of another is above it in the tree.
        casts = match &found.token {
            Token::DoubleColon => casts + 1,
            Token::Word(word) if matches!(word.keyword, Keyword::AND | Keyword::OR) => 0,
            Token::Eq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq | Token::Comma => 0,
            _ => casts,
        };
        if casts > DEPTH_MAX {
            let start = found.span.start;
            return Err(Error::invalid(format!("it is nested too deeply{start}; expected at most {DEPTH_MAX} levels")));
        }
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
            Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::Period | Token::DoubleColon => {
                operators += 1
            }
            other => {
                let hint = in_other_words(other);
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
