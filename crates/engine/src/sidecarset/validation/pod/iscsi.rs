//! iSCSI names (RFC 3720), by the three expressions of `k8s.io/kubernetes/pkg/apis/core/validation`.

/// What is wrong with the name of a target or an initiator, if anything.
pub fn wrong_name(name: &str) -> Option<&'static str> {
    let valid = match name.get(..3) {
        Some("iqn") => has_qualified_name(name),
        Some("eui") => is_number(name, 16),
        Some("naa") => is_number(name, 32),
        _ => return Some("must be valid format starting with iqn, eui, or naa"),
    };
    (!valid).then_some("must be valid format")
}

/// `iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`, which may begin anywhere.
fn has_qualified_name(name: &str) -> bool {
    name.match_indices("iqn.").any(|(at, start)| name.get(at + start.len()..).is_some_and(is_dated_name))
}

fn is_dated_name(rest: &str) -> bool {
    let Some((date, rest)) = rest.split_once('.') else { return false };
    let Some((year, month)) = date.split_once('-') else { return false };
    let is_digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((authority, own)) = rest.split_once(':') else { return false };
    let is_of_authority = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let ends_it = |c| matches!(c, ',' | ';' | '*' | '&' | '$' | '|' | ' ' | '\t' | '\n' | '\r' | '\u{c}');
    is_digits(year, 4)
        && is_digits(month, 2)
        && !authority.is_empty()
        && authority.bytes().all(is_of_authority)
        && !own.is_empty()
        && !own.contains(ends_it)
}

/// `^eui.[[:alnum:]]{16}$`: any character, and letters and digits of that number.
fn is_number(name: &str, digits: usize) -> bool {
    let mut rest = name.chars().skip(3);
    rest.next().is_some_and(|any| any != '\n')
        && rest.clone().count() == digits
        && rest.all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::wrong_name;

    #[test]
    fn names_have_one_of_three_forms() {
        let eui = format!("eui.{}", "0A".repeat(8));
        let naa = format!("naa.{}", "0A".repeat(16));
        for right in ["iqn.2020-01.com.example:storage", "iqn.2020-01.a:b:c", "iqnx iqn.2020-01.a:b", &eui, &naa] {
            assert_eq!(wrong_name(right), None, "{right}");
        }
        for wrong in [
            "iqn",
            "iqn.2020-1.a:b",
            "iqn.2020-01.a",
            "iqn.2020-01.a:",
            "iqn.2020-01.a_b:c",
            "iqn.2020-01.a:b c",
            "eui.0",
        ] {
            assert_eq!(wrong_name(wrong), Some("must be valid format"), "{wrong}");
        }
        for wrong in ["", "x", "IQN.2020-01.a:b", "éé"] {
            assert_eq!(wrong_name(wrong), Some("must be valid format starting with iqn, eui, or naa"), "{wrong}");
        }
    }
}
