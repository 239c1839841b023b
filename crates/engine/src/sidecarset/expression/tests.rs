//! Cases 62 to 70 of the reference, as far as they are about the language.

use proptest::prelude::*;

use super::{Expression, MAX_BYTES, Nanos, Resource, UNIT};
use crate::sidecarset::expression::ExpressionError;

const CPU: Resource = Resource::Cpu;
const MEMORY: Resource = Resource::Memory;
const MI: Nanos = 1024 * 1024 * UNIT;

fn read(text: &str, resource: Resource) -> Result<Expression, ExpressionError> {
    Expression::read(text, resource)
}

fn evaluated(text: &str, resource: Resource, amount: Option<Nanos>) -> Option<String> {
    read(text, resource).unwrap().evaluate(amount).map(|value| resource.print(value))
}

#[test]
fn expressions_have_the_values_of_cases_62_to_69() {
    let milli = |number: Nanos| Some(number * UNIT / 1000);
    let mebi = |number: Nanos| Some(number * MI);
    for (text, resource, amount, expected) in [
        ("cpu*50%", CPU, milli(600), "300m"),
        ("max(cpu*50%, 50m)", CPU, milli(400), "200m"),
        ("max(cpu*50%,50m)", CPU, milli(10), "50m"),
        ("cpu*30%", CPU, milli(100), "30m"),
        ("memory*30%", MEMORY, mebi(600), "180Mi"),
        ("max(memory*20% + 100Mi, 200Mi)", MEMORY, mebi(800), "260Mi"),
        ("1Gi", MEMORY, None, "1Gi"),
        ("200Mi", MEMORY, None, "200Mi"),
        ("cpu + 50m", CPU, milli(100), "150m"),
        ("0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)", CPU, milli(12_000), "4800m"),
        ("0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)", CPU, milli(2_000), "1"),
        // Any case (differential additions of the reference).
        ("MEMORY*0.1", MEMORY, mebi(100), "10Mi"),
        ("Cpu * .5", CPU, milli(1_000), "500m"),
        ("MIN(cpu, 1)", CPU, milli(3_000), "1"),
        ("memory", MEMORY, mebi(3), "3Mi"),
        ("-cpu + 2", CPU, milli(500), "1500m"),
        ("+cpu", CPU, milli(500), "500m"),
        ("--cpu", CPU, milli(500), "500m"),
        ("(cpu + 1) * 2 / 3", CPU, milli(500), "1"),
        ("cpu / (1 + 2)", CPU, milli(1_000), "333m"),
        ("cpu / 3 * 3", CPU, milli(1_000), "1"),
        ("cpu/3*3", CPU, milli(2_000), "2"),
        ("-(cpu/7)*-7", CPU, milli(2_000), "2"),
        ("1Gi/3*3", MEMORY, None, "1Gi"),
        // Each part of a sum is truncated to billionths.
        ("cpu/3 + cpu/3 + cpu/3", CPU, milli(1_000), "999m"),
        ("cpu * 1e3", CPU, milli(1), "1"),
        ("2E-1 * cpu", CPU, milli(1_000), "200m"),
        ("1E", MEMORY, None, "1E"),
        ("2Ei", MEMORY, None, "2Ei"),
        ("200M", MEMORY, None, "200M"),
        ("1.5", CPU, None, "1500m"),
        ("1.5Gi", MEMORY, None, "1536Mi"),
        ("max(1, 2) * cpu", CPU, milli(100), "200m"),
        ("min(0.1, 25%) * cpu", CPU, milli(100), "10m"),
    ] {
        assert_eq!(evaluated(text, resource, amount).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn memory_is_whole_bytes_and_nothing_is_below_zero_as_cases_70_and_7b_10_want() {
    assert_eq!(evaluated("memory*33.3%", MEMORY, Some(100 * MI)).unwrap(), "34917580");
    assert_eq!(evaluated("1.5", MEMORY, None).unwrap(), "1");
    assert_eq!(evaluated("memory * 0.29", MEMORY, Some(100 * UNIT)).unwrap(), "29");
    assert_eq!(evaluated("cpu-2", CPU, Some(UNIT)).unwrap(), "0");
    assert_eq!(evaluated("cpu-2", CPU, Some(3 * UNIT)).unwrap(), "1");
    assert_eq!(evaluated("cpu*33.3%", CPU, Some(UNIT / 10)).unwrap(), "33m");
}

#[test]
fn without_an_amount_a_constant_has_its_value_and_an_expression_with_the_variable_has_none() {
    assert_eq!(evaluated("200Mi", MEMORY, None).unwrap(), "200Mi");
    assert_eq!(evaluated("memory*0 + 200Mi", MEMORY, None), None);
    assert_eq!(read("100m*2", CPU).unwrap().constant(), Some(UNIT / 5));
    assert_eq!(read("cpu", CPU).unwrap().constant(), None);
}

#[test]
fn what_is_not_of_the_language_is_refused_as_cases_68_70_and_71_want() {
    for (text, resource, expected) in [
        ("", CPU, "at character 1: the expression ends too early"),
        ("  ", CPU, "at character 3: the expression ends too early"),
        ("5X", CPU, "at character 2: unknown suffix \"X\"; use %, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei"),
        ("12abc", CPU, "at character 3: unknown suffix \"abc\"; use %, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei"),
        ("1e", CPU, "at character 2: unknown suffix \"e\"; use %, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei"),
        ("8%3", CPU, "at character 3: expected an operator or the end, found '3'"),
        ("1.2.3", CPU, "at character 4: expected an operator or the end, found '.'"),
        (".", CPU, "at character 2: expected a digit"),
        ("cpu * invalid", CPU, "at character 7: unknown name \"invalid\"; known are cpu, max(a, b) and min(a, b)"),
        ("memory", CPU, "at character 1: unknown name \"memory\"; known are cpu, max(a, b) and min(a, b)"),
        (
            "cpu*100m",
            CPU,
            "at character 9: a quantity may not be multiplied by a quantity; multiply it by a plain number",
        ),
        ("4/cpu", CPU, "at character 6: nothing may be divided by a quantity; divide by a plain number"),
        ("cpu/100m", CPU, "at character 9: nothing may be divided by a quantity; divide by a plain number"),
        ("cpu/0", CPU, "at character 6: division by zero"),
        ("cpu/(1-1)", CPU, "at character 10: division by zero"),
        ("cpu/0%", CPU, "at character 7: division by zero"),
        ("(cpu", CPU, "at character 5: expected ')' before the end"),
        ("cpu)", CPU, "at character 4: expected an operator or the end, found ')'"),
        ("max(cpu)", CPU, "at character 8: expected ',', found ')'"),
        ("max(cpu, 1, 2)", CPU, "at character 11: expected ')', found ','"),
        ("max cpu, 1", CPU, "at character 5: expected '(', found 'c'"),
        ("cpu cpu", CPU, "at character 5: expected an operator or the end, found 'c'"),
        ("cpu +", CPU, "at character 6: the expression ends too early"),
        ("-1", CPU, "at character 1: a constant below zero is no amount"),
        ("1-2", CPU, "at character 1: a constant below zero is no amount"),
        ("é", CPU, "at character 1: expected a number, cpu, max, min or a parenthesis, found 'é'"),
        ("1e400", CPU, "at character 6: the number is too large, or has too many digits"),
        ("1e99999999999999999999", CPU, "at character 23: the number is too large, or has too many digits"),
        ("1.5e-9223372036854775808", CPU, "at character 25: the number is too large, or has too many digits"),
        ("100000Ei", MEMORY, "at character 1: the number is too large, or has too many digits"),
    ] {
        assert_eq!(read(text, resource).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn length_and_depth_have_bounds() {
    let longest = format!("cpu{}", "+cpu".repeat(MAX_BYTES / 4 - 1));
    assert!(longest.len() <= MAX_BYTES);
    assert_eq!(read(&longest, CPU).unwrap().evaluate(Some(UNIT)), Some(256 * UNIT));
    assert!(read(&format!("{longest}+cpu+cpu"), CPU).unwrap_err().text.contains("at most 1024 bytes"));
    for (open, close) in [("(", ")"), ("-", ""), ("max(0,", ")")] {
        let nested = |depth: usize| format!("{}cpu{}", open.repeat(depth), close.repeat(depth));
        assert!(read(&nested(31), CPU).is_ok(), "{open}");
        assert!(read(&nested(32), CPU).unwrap_err().text.contains("nested deeper"), "{open}");
    }
}

#[test]
fn amounts_beyond_all_measure_are_the_largest_one() {
    let largest = "9223372036854775807";
    for text in ["memory*2", "memory*1e12", "memory+memory", "memory*1000*1000*1000/1000"] {
        let value = evaluated(text, MEMORY, Some(Nanos::MAX)).unwrap();
        assert!(value == largest || text.ends_with("/1000"), "{text}: {value}");
    }
}

fn arbitrary_text() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(vec![
        "cpu", "memory", "max(", "min(", "(", ")", ",", "+", "-", "*", "/", "0", "1", "2.5", "50%", "100m", "1Gi",
        "1e3", " ", "x", "é",
    ]);
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn whatever_is_read_evaluates_for_every_amount(text in arbitrary_text(), amount in any::<i64>(), is_cpu in any::<bool>()) {
        let resource = if is_cpu { CPU } else { MEMORY };
        if let Ok(expression) = Expression::read(&text, resource) {
            for amount in [0, 1, UNIT, Nanos::from(amount), Nanos::from(amount) * UNIT, Nanos::MAX, Nanos::MIN] {
                let value = expression.evaluate(Some(amount)).unwrap();
                prop_assert!(value >= 0);
                let printed: admission::format::Quantity = resource.print(value).parse().unwrap();
                let step = if is_cpu { UNIT / 1000 } else { UNIT };
                prop_assert_eq!(value % step, 0);
                prop_assert!(!printed.is_negative());
            }
        }
    }
}
