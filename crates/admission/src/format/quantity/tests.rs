#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::{Format, ParseQuantityError, Quantity};

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

/// Text, what Kubernetes prints for it, and what it prints after rounding up to thousandths; recorded from
/// apimachinery v0.36.3.
const PRINTED: &[(&str, &str, &str)] = &[
    ("0", "0", "0"),
    ("-0", "0", "0"),
    ("000", "0", "0"),
    ("+", "0", "0"),
    ("k", "0", "0"),
    ("1", "1", "1"),
    ("+1", "+1", "+1"),
    ("-1", "-1", "-1"),
    ("01", "01", "01"),
    ("1.", "1.", "1."),
    ("1.5", "1500m", "1500m"),
    ("1.500", "1.500", "1.500"),
    (".5", "500m", "500m"),
    ("1n", "1n", "1m"),
    ("1u", "1u", "1m"),
    ("1m", "1m", "1m"),
    ("1000m", "1", "1"),
    ("1500m", "1500m", "1500m"),
    ("1k", "1k", "1k"),
    ("1M", "1M", "1M"),
    ("1G", "1G", "1G"),
    ("1T", "1T", "1T"),
    ("1P", "1P", "1P"),
    ("1E", "1E", "1E"),
    ("1Ki", "1Ki", "1Ki"),
    ("1Mi", "1Mi", "1Mi"),
    ("1Gi", "1Gi", "1Gi"),
    ("1Ti", "1Ti", "1Ti"),
    ("1Pi", "1Pi", "1Pi"),
    ("7Ei", "7Ei", "7Ei"),
    ("8Ei", "9223372036854775807", "9223372036854775807"),
    ("-9Ei", "-9223372036854775807", "-9223372036854775807"),
    ("1024Ki", "1Mi", "1Mi"),
    ("1000Ki", "1000Ki", "1000Ki"),
    ("1.5Gi", "1536Mi", "1536Mi"),
    ("0.1Ki", "102400m", "102400m"),
    ("0.5Ki", "512", "512"),
    ("0.0001Ki", "102400u", "103m"),
    ("1.5Ki", "1536", "1536"),
    ("1000", "1k", "1k"),
    ("1100000", "1100k", "1100k"),
    ("1024", "1024", "1024"),
    ("1e3", "1e3", "1e3"),
    ("1E3", "1E3", "1E3"),
    ("1e+3", "1e+3", "1e+3"),
    ("1e1", "10", "10"),
    ("1e-1", "100e-3", "100e-3"),
    ("1e-10", "1e-9", "1e-3"),
    ("1e20", "100e18", "100e18"),
    ("0.1n", "1n", "1m"),
    ("-0.1n", "-1n", "-1m"),
    ("1.0001", "1000100u", "1001m"),
    ("-1.0001", "-1000100u", "-1001m"),
    ("1.000000001", "1.000000001", "1001m"),
    ("123456789012345678901234567890n", "123456789012345678901234567890n", "123456789012345678901235m"),
    ("0.00000000000000000000000000000000000001Ei", "1n", "1m"),
    ("1.00000000000000000000000000001Gi", "1073741824000000001n", "1073741824001m"),
];

#[test]
fn quantities_print_as_in_kubernetes_before_and_after_rounding() {
    for (text, printed, rounded) in PRINTED {
        let mut quantity = quantity(text);
        assert_eq!(quantity.to_string(), *printed, "{text}");
        quantity.round_up_to_milli();
        assert_eq!(quantity.to_string(), *rounded, "{text}");
    }
}

#[test]
fn texts_that_are_no_quantity_are_refused_for_the_same_reason() {
    use ParseQuantityError::{Form, Number, Suffix};
    let cases: [(&[&str], _, _); 3] = [
        (
            &["", " 1", "1 ", "1.5.5", "x", "1kib", "1KI", "1e1.5", "1٣", "½"],
            Form,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            &["--1", "1K", "1ki", "1e", "1e+", "1e99999999999999999999", "1m5", "1+5"],
            Suffix,
            "unable to parse quantity's suffix",
        ),
        (&["Ei", "-.Pi", "e-10"], Number, "unable to parse numeric part of quantity"),
    ];
    for (texts, error, message) in cases {
        for text in texts {
            assert_eq!(text.parse::<Quantity>(), Err(error), "{text:?}");
        }
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn amounts_compare_whatever_they_are_written_with() {
    let ascending = ["-1Gi", "-1n", "0", "1n", "1m", "0.5", "1", "1k", "1Ki", "1M", "1Gi", "1E", "8Ei", "1e19", "1e40"];
    for pair in ascending.windows(2) {
        assert!(quantity(pair[0]) < quantity(pair[1]), "{pair:?}");
    }
    for (one, same) in [("1Gi", "1024Mi"), ("0.5", "500m"), ("1e3", "1k"), ("0Ki", "-0")] {
        assert_eq!(quantity(one), quantity(same));
    }
}

#[test]
fn sums_are_exact_and_keep_the_format_of_the_first_amount_that_is_not_zero() {
    let cases = [
        ("1Gi", "1Gi", "2Gi"),
        ("1Gi", "1M", "1074741824"),
        ("1Gi", "1m", "1073741824001m"),
        ("0", "1Gi", "1Gi"),
        ("0Ki", "1500m", "1500m"),
        ("1", "-1", "0"),
        ("+1", "0", "1"),
        ("0.1", "0.2", "300m"),
    ];
    for (one, other, sum) in cases {
        let mut total = quantity(one);
        total.add(&quantity(other));
        assert_eq!(total.to_string(), sum, "{one} + {other}");
    }
}

#[test]
fn amounts_out_of_bounds_stay_at_the_bound_and_print_as_written() {
    for text in ["1e30", "1e999999999999", "-1e30"] {
        let mut far = quantity(text);
        assert_eq!(far.to_string(), text);
        far.round_up_to_milli();
        assert_eq!(far.to_string(), text);
        assert_eq!(far.value(), if text.starts_with('-') { i64::MIN } else { i64::MAX });
        let once = far.clone();
        far.add(&once);
        assert!(if once.is_negative() { far <= once } else { far >= once });
    }
    // Kubernetes prints "1" here, which it then reads back as 1: there is no suffix greater than E.
    assert_eq!(quantity("1000E").to_string(), "1000E");
}

#[test]
fn whole_and_thousandth_values_round_away_from_zero() {
    let cases = [("1500m", 2, 1500), ("-1500m", -2, -1500), ("1n", 1, 1), ("1Ki", 1024, 1_024_000), ("0", 0, 0)];
    for (text, value, milli_value) in cases {
        let quantity = quantity(text);
        assert_eq!((quantity.value(), quantity.milli_value()), (value, milli_value), "{text}");
    }
    assert_eq!(quantity("9e18").milli_value(), i64::MAX);
}

#[test]
fn json_may_be_text_or_number() {
    let cases = [
        (r#""1Gi""#, r#""1Gi""#),
        (r#"" 1.5 ""#, r#""1500m""#),
        ("5", r#""5""#),
        ("-5000", r#""-5k""#),
        ("0.1", r#""100m""#),
        ("18446744073709551615", r#""18446744073709551615""#),
    ];
    for (json, expected) in cases {
        let quantity: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&quantity).unwrap(), expected, "{json}");
    }
    for json in [r#""""#, r#""1 Gi""#, "true", "{}"] {
        assert!(serde_json::from_str::<Quantity>(json).is_err(), "{json}");
    }
}

#[test]
fn the_suffix_decides_the_format() {
    use Format::{BinarySi, DecimalExponent, DecimalSi};
    for (text, format) in [("1", DecimalSi), ("1Ki", BinarySi), ("1e0", DecimalExponent), ("0.0001Ki", DecimalSi)] {
        assert_eq!(quantity(text).format(), format, "{text}");
    }
}

/// Of a number of any length only the digits count that can make a difference.
#[test]
fn a_text_of_a_million_digits_is_the_amount_that_it_says() {
    let zeros = "0".repeat(1_000_000);
    let cases = [
        (format!("1{zeros}e-1000000"), "1"),
        (format!("-15{zeros}e-1000001"), "-1500m"),
        (format!("{zeros}7.{zeros}"), "7"),
        (format!("7.{zeros}1"), "7000000001n"),
        (format!("0.{zeros}1"), "1n"),
        (format!("0.{zeros}1e1000001"), "1"),
        (format!("0.5{zeros}Ki"), "512"),
        (format!("0.0009765625{zeros}Ki"), "1"),
        (format!("0.0009765625{zeros}1Ki"), "1000000001n"),
        (format!("0.{zeros}"), "0"),
    ];
    for (text, expected) in cases {
        let start: String = text.chars().take(20).collect();
        let amount = Quantity { written: None, ..quantity(&text) };
        assert_eq!(amount.to_string().parse::<Quantity>().unwrap(), quantity(expected), "{start}");
    }
    let text = format!("1{zeros}");
    assert_eq!(quantity(&text), quantity("1e39"));
}

proptest! {
    /// Digits that do not change the amount do not change how it is read.
    #[test]
    fn zeros_at_both_ends_change_no_amount(
        whole in "[0-9]{0,45}", fraction in "[0-9]{1,70}", zeros in 0_usize..100, suffix in "(|m|Ki|Ei|e-30|e10)",
    ) {
        let zeros = "0".repeat(zeros);
        let plain = format!("{whole}.{fraction}{suffix}").parse::<Quantity>();
        let long = format!("{zeros}{whole}.{fraction}{zeros}{suffix}").parse::<Quantity>();
        prop_assert_eq!(plain, long);
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_amount(
        text in "[-+]?[0-9]{0,20}(\\.[0-9]{0,20})?(|[num]|[kMGTPE]i?|[eE][-+]?[0-9]{1,3})",
    ) {
        if let Ok(quantity) = text.parse::<Quantity>() {
            prop_assert_eq!(quantity.to_string().parse::<Quantity>(), Ok(quantity));
        }
    }

    #[test]
    fn no_text_makes_parsing_or_arithmetic_panic(text in "[-+0-9.eEinumkKMGTP]{0,12}|.{0,8}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let mut sum = quantity.clone();
            sum.add(&quantity);
            sum.round_up_to_milli();
            prop_assert_eq!(sum >= quantity, !quantity.is_negative());
        }
    }
}
