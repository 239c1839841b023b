//! The language of `resourcesPolicy.resourcesExpr`: amounts computed from those of the pod's own containers.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = unary { ("*" | "/") unary }
//! unary   = ["+" | "-"] unary | literal | variable | ("max" | "min") "(" sum "," sum ")" | "(" sum ")"
//! literal = digits ["." digits] ["e" exponent] [ "%" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | … | "Ei" ]
//! ```
//!
//! There are two types. A literal without a suffix of quantities is a number, and so is all that is made of numbers alone: it is
//! computed when the expression is read. The variable and literals with a suffix are quantities. A number is turned into a
//! quantity where a quantity is added to it or compared with it. Quantities are not multiplied with each other and nothing is
//! divided by one, so that every divisor is a known number, and what is read can be evaluated for every pod. A result below zero
//! counts as zero.

mod number;
mod parser;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use admission::format::Quantity;

use self::number::Ratio;

/// The longest expression, in bytes.
pub const MAX_BYTES: usize = 1024;
/// The deepest nesting of parentheses, functions and signs.
pub const MAX_DEPTH: usize = 32;

/// Billionths of a core or byte.
pub type Nanos = i128;

/// Nanos in a core or byte.
pub const UNIT: Nanos = 1_000_000_000;
/// Nanos in a thousandth of a core, below which the API server keeps nothing.
const MILLI: Nanos = 1_000_000;
/// The largest amount: what a 64-bit number of cores or bytes holds. Larger ones count as this.
const MAX: Nanos = i64::MAX as Nanos * UNIT;

/// What an expression is about. It names the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// In cores, in whole thousandths.
    Cpu,
    /// In bytes, in whole ones.
    Memory,
}

impl Resource {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Memory];

    /// The name in `limits` and `requests`, and of the variable.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }

    /// An amount as the API server stores it.
    pub fn nanos(self, amount: &Quantity) -> Nanos {
        match self {
            Self::Cpu => Nanos::from(amount.milli_value()) * MILLI,
            Self::Memory => Nanos::from(amount.value()) * UNIT,
        }
    }

    /// An amount without what the resource has no room for.
    const fn whole(self, amount: Nanos) -> Nanos {
        let step = match self {
            Self::Cpu => MILLI,
            Self::Memory => UNIT,
        };
        amount - amount % step
    }

    /// An amount as a quantity, in its shortest form.
    pub fn print(self, amount: Nanos) -> String {
        let decimal = |number| with_suffix(number, 1000, &["", "k", "M", "G", "T", "P", "E"]);
        match self {
            Self::Cpu if amount % UNIT != 0 => format!("{}m", amount / MILLI),
            Self::Cpu => decimal(amount / UNIT),
            Self::Memory => {
                let binary = with_suffix(amount / UNIT, 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]);
                let decimal = decimal(amount / UNIT);
                if decimal.len() < binary.len() { decimal } else { binary }
            }
        }
    }
}

/// A number in the largest unit of which it is a whole multiple.
fn with_suffix(mut number: i128, step: i128, suffixes: &[&str]) -> String {
    let mut at = 0;
    while number != 0 && number % step == 0 && at + 1 < suffixes.len() {
        number /= step;
        at += 1;
    }
    format!("{number}{}", suffixes.get(at).unwrap_or(&""))
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}: {text}")]
pub struct ExpressionError {
    /// Position, counted from 1.
    pub at: usize,
    /// What is wrong there.
    pub text: String,
}

/// An expression that evaluates for every pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    resource: Resource,
    root: ExpressionNode,
    has_variable: bool,
}

/// A quantity.
#[derive(Debug, Clone, PartialEq)]
enum ExpressionNode {
    Variable,
    Constant(Nanos),
    Scaled(Box<Self>, Ratio),
    Sum(Box<Self>, Box<Self>),
    Max(Box<Self>, Box<Self>),
    Min(Box<Self>, Box<Self>),
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`ExpressionError`] for a text that is not of the language, is too long or too deep, or is a constant below zero.
    pub fn read(text: &str, resource: Resource) -> Result<Self, ExpressionError> {
        let (root, has_variable) = parser::parse(text, resource)?;
        let expression = Self { resource, root, has_variable };
        if !has_variable && expression.root.evaluate(0) < 0 {
            return Err(ExpressionError { at: 1, text: "a constant below zero is no amount".to_owned() });
        }
        Ok(expression)
    }

    /// The value where the variable has this amount, in whole thousandths of a core or in whole bytes. `None` where the
    /// expression has the variable and there is no amount.
    pub fn evaluate(&self, amount: Option<Nanos>) -> Option<Nanos> {
        if self.has_variable && amount.is_none() {
            return None;
        }
        let value = self.root.evaluate(amount.unwrap_or_default().clamp(-MAX, MAX));
        Some(self.resource.whole(value.max(0)))
    }

    /// The value, where it is the same for every pod.
    pub fn constant(&self) -> Option<Nanos> {
        if self.has_variable { None } else { self.evaluate(None) }
    }
}

impl ExpressionNode {
    fn evaluate(&self, variable: Nanos) -> Nanos {
        let both = |one: &Self, other: &Self| (one.evaluate(variable), other.evaluate(variable));
        match self {
            Self::Variable => variable,
            Self::Constant(amount) => *amount,
            Self::Scaled(node, ratio) => ratio.of(node.evaluate(variable)).clamp(-MAX, MAX),
            Self::Sum(one, other) => {
                let (one, other) = both(one, other);
                one.saturating_add(other).clamp(-MAX, MAX)
            }
            Self::Max(one, other) => {
                let (one, other) = both(one, other);
                one.max(other)
            }
            Self::Min(one, other) => {
                let (one, other) = both(one, other);
                one.min(other)
            }
        }
    }
}
