//! Reads expressions, and computes what is known of them.

use super::number::Ratio;
use super::{ExpressionError, ExpressionNode, MAX_BYTES, MAX_DEPTH, Nanos, Resource, UNIT};

/// The value of a part, by its type.
enum Term {
    Number(Ratio),
    Quantity(ExpressionNode),
}

/// The expression, and whether the variable is in it.
pub(super) fn parse(text: &str, resource: Resource) -> Result<(ExpressionNode, bool), ExpressionError> {
    let mut parser = Parser { text, at: 0, depth: 0, resource, has_variable: false };
    if text.len() > MAX_BYTES {
        return Err(parser.error(format!("an expression has at most {MAX_BYTES} bytes")));
    }
    let term = parser.sum()?;
    parser.skip_space();
    if let Some(found) = parser.next_char() {
        return Err(parser.error(format!("expected an operator or the end, found {found:?}")));
    }
    Ok((parser.quantity(term)?, parser.has_variable))
}

struct Parser<'t> {
    text: &'t str,
    // In bytes.
    at: usize,
    depth: usize,
    resource: Resource,
    has_variable: bool,
}

impl<'t> Parser<'t> {
    fn sum(&mut self) -> Result<Term, ExpressionError> {
        let mut sum = self.product()?;
        while let Some(operator) = self.take_one_of(b"+-") {
            let operand = self.product()?;
            let operand = if operator == b'-' { self.negated(operand)? } else { operand };
            sum = match (sum, operand) {
                (Term::Number(one), Term::Number(other)) => Term::Number(self.fits(one.plus(other))?),
                (one, other) => self.joined(one, other, ExpressionNode::Sum)?,
            };
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<Term, ExpressionError> {
        let mut product = self.unary()?;
        while let Some(operator) = self.take_one_of(b"*/") {
            let operand = self.unary()?;
            product = if operator == b'*' { self.times(product, operand)? } else { self.divided(product, &operand)? };
        }
        Ok(product)
    }

    fn times(&self, one: Term, other: Term) -> Result<Term, ExpressionError> {
        match (one, other) {
            (Term::Number(one), Term::Number(other)) => Ok(Term::Number(self.fits(one.times(other))?)),
            (Term::Number(number), Term::Quantity(node)) | (Term::Quantity(node), Term::Number(number)) => {
                Ok(Term::Quantity(scaled(node, number)))
            }
            _ => Err(self.error("a quantity may not be multiplied by a quantity; multiply it by a plain number")),
        }
    }

    fn divided(&self, dividend: Term, divisor: &Term) -> Result<Term, ExpressionError> {
        let Term::Number(divisor) = *divisor else {
            return Err(self.error("nothing may be divided by a quantity; divide by a plain number"));
        };
        if divisor.is_zero() {
            return Err(self.error("division by zero"));
        }
        let inverse = self.fits(divisor.inverse())?;
        match dividend {
            Term::Number(number) => Ok(Term::Number(self.fits(number.times(inverse))?)),
            Term::Quantity(node) => Ok(Term::Quantity(scaled(node, inverse))),
        }
    }

    fn unary(&mut self) -> Result<Term, ExpressionError> {
        self.skip_space();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let term = match self.peek() {
            Some(b'-') => {
                self.at += 1;
                let operand = self.unary()?;
                self.negated(operand)
            }
            Some(b'+') => {
                self.at += 1;
                self.unary()
            }
            Some(b'(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.expect(b')')?;
                Ok(inner)
            }
            Some(b'0'..=b'9' | b'.') => self.literal(),
            Some(byte) if byte.is_ascii_alphabetic() => self.name(),
            _ => Err(match self.next_char() {
                Some(found) => {
                    let name = self.resource.name();
                    self.error(format!("expected a number, {name}, max, min or a parenthesis, found {found:?}"))
                }
                None => self.error("the expression ends too early"),
            }),
        };
        self.depth -= 1;
        term
    }

    fn name(&mut self) -> Result<Term, ExpressionError> {
        let start = self.at;
        let word = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_').to_ascii_lowercase();
        if word == self.resource.name() {
            self.has_variable = true;
            return Ok(Term::Quantity(ExpressionNode::Variable));
        }
        if word != "max" && word != "min" {
            self.at = start;
            let known = format!("known are {}, max(a, b) and min(a, b)", self.resource.name());
            return Err(self.error(format!("unknown name {word:?}; {known}")));
        }
        self.expect(b'(')?;
        let one = self.sum()?;
        self.expect(b',')?;
        let other = self.sum()?;
        self.expect(b')')?;
        match (one, other, word == "max") {
            (Term::Number(one), Term::Number(other), true) => Ok(Term::Number(one.larger(other))),
            (Term::Number(one), Term::Number(other), false) => Ok(Term::Number(one.smaller(other))),
            (one, other, true) => self.joined(one, other, ExpressionNode::Max),
            (one, other, false) => self.joined(one, other, ExpressionNode::Min),
        }
    }

    fn literal(&mut self) -> Result<Term, ExpressionError> {
        let start = self.at;
        let number = self.number()?;
        let suffix_at = self.at;
        let suffix = self.take_while(|byte| byte.is_ascii_alphabetic() || byte == b'%');
        let term = match suffix {
            "" => Some(Term::Number(number)),
            "%" => Ratio::new(1, 100).and_then(|percent| number.times(percent)).map(Term::Number),
            suffix => {
                let Some(unit) = unit_of(suffix) else {
                    let text =
                        format!("unknown suffix {suffix:?}; use %, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei");
                    self.at = suffix_at;
                    return Err(self.error(text));
                };
                number.of_unit(unit).map(|amount| Term::Quantity(ExpressionNode::Constant(amount)))
            }
        };
        if term.is_none() {
            self.at = start;
        }
        self.fits(term)
    }

    /// Digits with a point and an exponent.
    fn number(&mut self) -> Result<Ratio, ExpressionError> {
        let start = self.at;
        let whole = self.take_while(|byte| byte.is_ascii_digit()).len();
        let mut fraction = 0;
        if self.peek() == Some(b'.') {
            self.at += 1;
            fraction = self.take_while(|byte| byte.is_ascii_digit()).len();
        }
        if whole + fraction == 0 {
            return Err(self.error("expected a digit"));
        }
        let digits = self.text.get(start..self.at).unwrap_or_default().bytes().filter(u8::is_ascii_digit);
        let mut numerator: Option<i128> = Some(0);
        for digit in digits {
            numerator = numerator.and_then(|number| number.checked_mul(10)?.checked_add(i128::from(digit - b'0')));
        }
        let exponent = self.exponent().saturating_sub(i64::try_from(fraction).unwrap_or(i64::MAX));
        let power = u32::try_from(exponent.unsigned_abs()).ok().and_then(|power| 10_i128.checked_pow(power));
        let ratio = match (numerator, power) {
            (Some(0), _) => Ratio::new(0, 1),
            (Some(number), Some(power)) if exponent >= 0 => {
                number.checked_mul(power).and_then(|number| Ratio::new(number, 1))
            }
            (Some(number), Some(power)) => Ratio::new(number, power),
            _ => None,
        };
        self.fits(ratio)
    }

    /// An exponent where one is; `1E` and `1Ei` have suffixes.
    fn exponent(&mut self) -> i64 {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(after) = rest.strip_prefix(['e', 'E']) else { return 0 };
        let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return 0;
        }
        let sign = after.len() - digits.len();
        self.at += 1 + sign + length;
        let exponent = after.get(..sign + length).unwrap_or_default();
        // What is beyond is beyond every number.
        exponent.parse().unwrap_or(i64::MAX)
    }

    fn negated(&self, term: Term) -> Result<Term, ExpressionError> {
        self.times(term, Term::Number(Ratio::MINUS_ONE))
    }

    fn joined(
        &self,
        one: Term,
        other: Term,
        join: impl FnOnce(Box<ExpressionNode>, Box<ExpressionNode>) -> ExpressionNode,
    ) -> Result<Term, ExpressionError> {
        let (one, other) = (self.quantity(one)?, self.quantity(other)?);
        let are_known = matches!((&one, &other), (ExpressionNode::Constant(_), ExpressionNode::Constant(_)));
        let joined = join(Box::new(one), Box::new(other));
        Ok(Term::Quantity(if are_known { ExpressionNode::Constant(joined.evaluate(0)) } else { joined }))
    }

    fn quantity(&self, term: Term) -> Result<ExpressionNode, ExpressionError> {
        match term {
            Term::Number(number) => Ok(ExpressionNode::Constant(self.fits(number.as_quantity())?)),
            Term::Quantity(node) => Ok(node),
        }
    }

    fn fits<T>(&self, value: Option<T>) -> Result<T, ExpressionError> {
        value.ok_or_else(|| self.error("the number is too large, or has too many digits"))
    }

    fn expect(&mut self, byte: u8) -> Result<(), ExpressionError> {
        if self.take_one_of(&[byte]).is_some() {
            return Ok(());
        }
        let expected = char::from(byte);
        Err(match self.next_char() {
            Some(found) => self.error(format!("expected {expected:?}, found {found:?}")),
            None => self.error(format!("expected {expected:?} before the end")),
        })
    }

    fn take_one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        self.skip_space();
        let byte = self.peek().filter(|byte| bytes.contains(byte))?;
        self.at += 1;
        Some(byte)
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.bytes().take_while(|byte| belongs(*byte)).count();
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        self.take_while(|byte| byte.is_ascii_whitespace());
    }

    fn next_char(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, text: impl Into<String>) -> ExpressionError {
        let before = self.text.get(..self.at).map_or(0, |before| before.chars().count());
        ExpressionError { at: before + 1, text: text.into() }
    }
}

fn scaled(node: ExpressionNode, ratio: Ratio) -> ExpressionNode {
    // Factors are multiplied first, exactly: `cpu/3*3` is `cpu`.
    match node {
        ExpressionNode::Scaled(inner, first) => match first.times(ratio) {
            Some(both) => ExpressionNode::Scaled(inner, both),
            None => ExpressionNode::Scaled(Box::new(ExpressionNode::Scaled(inner, first)), ratio),
        },
        node => ExpressionNode::Scaled(Box::new(node), ratio),
    }
}

/// Nanos in a unit of the suffix.
fn unit_of(suffix: &str) -> Option<Nanos> {
    const DECIMAL: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let power = |list: &[&str], base: i128| {
        let at = list.iter().position(|known| *known == suffix)?;
        Some(UNIT * base.pow(u32::try_from(at + 1).ok()?))
    };
    if suffix == "m" { Some(UNIT / 1000) } else { power(&DECIMAL, 1000).or_else(|| power(&BINARY, 1024)) }
}
