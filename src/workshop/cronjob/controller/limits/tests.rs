use super::*;

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + milliseconds).unwrap()
}

fn limit() -> Limit {
    Limit::new(Rate { per_second: 1, burst: 2 }, Rate { per_second: 10, burst: 4 })
}

#[test]
fn one_owner_has_a_burst_and_then_its_rate() {
    let mut limit = limit();
    for _ in 0..3 {
        assert_eq!(limit.take("a", at(0)), Ok(()));
    }
    assert_eq!(limit.take("a", at(0)), Err(Duration::from_secs(1)));
    assert_eq!(limit.take("a", at(400)), Err(Duration::from_millis(600)), "asking again costs nothing");
    assert_eq!(limit.take("b", at(400)), Ok(()));
    assert_eq!(limit.take("a", at(1000)), Ok(()));
    assert_eq!(limit.take("a", at(1000)), Err(Duration::from_secs(1)));
    assert_eq!(limit.take("a", at(60_000)), Ok(()));
}

#[test]
fn many_owners_wait_in_the_order_in_which_they_came() {
    let mut limit = limit();
    let owners: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let waits: Vec<u128> =
        owners.iter().map(|owner| limit.take(owner, at(0)).err().unwrap_or_default().as_millis()).collect();
    assert_eq!(waits[..6], [0, 0, 0, 0, 0, 100]);
    assert_eq!(waits[19], 1500);
    assert_eq!(limit.take("19", at(1499)), Err(Duration::from_millis(1)));
    assert_eq!(limit.take("19", at(1500)), Ok(()));
}

#[test]
fn what_is_not_worth_waiting_for_is_left_out_and_takes_no_place() {
    let mut limit = limit();
    let taken = (0..10).filter(|_| limit.try_take("a", at(0))).count();
    assert_eq!(taken, 3);
    assert!(limit.try_take("b", at(0)));
    assert!(!limit.try_take("a", at(999)));
    assert!(limit.try_take("a", at(1000)));
}

#[test]
fn a_clock_that_is_set_back_keeps_nobody() {
    let mut limit = limit();
    for _ in 0..4 {
        let _ = limit.take("a", at(0));
    }
    assert_eq!(limit.take("a", at(-36_000_000)), Ok(()));
}

#[test]
fn owners_that_have_nothing_to_wait_for_are_forgotten() {
    let mut limit = Limit::of_status();
    for number in 0..100_000 {
        let _ = limit.take(&number.to_string(), at(number * 1000));
    }
    assert!(limit.owners.len() <= 2 * OWNERS, "{}", limit.owners.len());
}
