//! The only place that asks what time it is.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

use crate::domain::{Steady, before};

/// A machine's clock that moves further than this at once is not believed: somebody set it wrong, and
/// every order would expire, or every token live again. Steps of time servers are far smaller.
const LEAP_MAX_MS: i64 = Clock::LEAP_MAX.as_secs() * 1_000;

/// The service's clock. A sandbox may move it forward; a standing one moves only when told to.
#[derive(Debug)]
pub struct Clock {
    base: Base,
    ahead_ms: AtomicI64,
}

#[derive(Debug)]
enum Base {
    Standing(Timestamp),
    Machine(Machine),
}

/// The machine's wall clock, checked against the one nobody can set.
#[derive(Debug)]
struct Machine {
    /// The wall's lead over the steady clock, as last believed.
    lead_ms: AtomicI64,
    /// How far the wall has leapt from that; 0 while it is believed.
    leapt_ms: AtomicI64,
    /// The latest time that was told: a wall that is set back is waited for. Ids carry the time, and
    /// whoever reads events by them must not be told older ones later.
    told_ms: AtomicI64,
}

impl Machine {
    fn new() -> Self {
        let lead_ms = AtomicI64::new(wall_ms() - steady().as_millisecond());
        Self { lead_ms, leapt_ms: AtomicI64::new(0), told_ms: AtomicI64::new(i64::MIN) }
    }

    fn now_ms(&self, wall_ms: i64, steady_ms: i64) -> i64 {
        let now_ms = self.believed_ms(wall_ms, steady_ms);
        self.told_ms.fetch_max(now_ms, Ordering::AcqRel).max(now_ms)
    }

    fn believed_ms(&self, wall_ms: i64, steady_ms: i64) -> i64 {
        let believed = self.lead_ms.load(Ordering::Acquire);
        let leap = wall_ms - steady_ms - believed;
        if leap.abs() > LEAP_MAX_MS {
            self.leapt_ms.store(leap, Ordering::Release);
            return steady_ms + believed;
        }
        if leap != 0 {
            self.lead_ms.store(believed + leap, Ordering::Release);
        }
        if self.leapt_ms.load(Ordering::Acquire) != 0 {
            self.leapt_ms.store(0, Ordering::Release);
        }
        wall_ms
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one clock of the service")]
fn wall_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

fn steady() -> Steady {
    #[cfg(target_os = "linux")]
    const STEADY: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const STEADY: ClockId = ClockId::Monotonic;
    let now = clock_gettime(STEADY);
    Steady::since_boot(Duration::try_from(now).expect("a machine's clock begins at 0"))
}

impl Clock {
    /// Further than this a clock is wrong.
    pub const LEAP_MAX: SignedDuration = SignedDuration::from_mins(5);
    /// Machines that share a database are to agree better than this.
    pub const OFF_MAX: SignedDuration = SignedDuration::from_secs(2);

    pub fn system() -> Self {
        Self { base: Base::Machine(Machine::new()), ahead_ms: AtomicI64::new(0) }
    }

    /// For weeks in a moment: every test that needs the schedule.
    pub fn standing(at: Timestamp) -> Self {
        Self { base: Base::Standing(at), ahead_ms: AtomicI64::new(0) }
    }

    pub fn now(&self) -> Timestamp {
        // Whole milliseconds, as stored: a time read back equals the time that was written.
        let base = match &self.base {
            Base::Standing(at) => at.as_millisecond(),
            Base::Machine(machine) => machine.now_ms(wall_ms(), steady().as_millisecond()),
        };
        let ahead = self.ahead_ms.load(Ordering::Acquire);
        Timestamp::from_millisecond(base.saturating_add(ahead)).unwrap_or(Timestamp::MAX)
    }

    /// How far the machine's clock is from the time that this service goes by, since it leapt.
    pub fn leap(&self) -> SignedDuration {
        match &self.base {
            Base::Standing(_) => SignedDuration::ZERO,
            Base::Machine(machine) => {
                SignedDuration::from_millis(machine.leapt_ms.load(Ordering::Acquire))
            }
        }
    }

    /// The machine's own time, however far a sandbox was moved: for what belongs to people, not orders.
    pub fn machine_now(&self) -> Timestamp {
        before(self.now(), self.ahead())
    }

    pub fn advance(&self, by: SignedDuration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX).max(0);
        self.ahead_ms.fetch_add(by_ms, Ordering::AcqRel);
    }

    /// At least so far ahead of the machine's time; never back.
    pub fn be_ahead_by(&self, by: SignedDuration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead_ms.fetch_max(by_ms, Ordering::AcqRel);
    }

    pub fn ahead(&self) -> SignedDuration {
        SignedDuration::from_millis(self.ahead_ms.load(Ordering::Acquire))
    }

    /// For what must not go on after a time, also if the machine sleeps or its clock is set meanwhile.
    pub fn steady(&self) -> Steady {
        steady()
    }

    /// For how long something took or how long ago it was. What is due by the service's time asks `now`.
    #[expect(clippy::disallowed_methods, reason = "this is the one clock of the service")]
    pub fn stopwatch(&self) -> std::time::Instant {
        std::time::Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_800_000_000_000;

    /// A machine that has run for 7 s when its wall clock says noon.
    fn machine() -> Machine {
        let lead_ms = AtomicI64::new(NOON - 7_000);
        Machine { lead_ms, leapt_ms: AtomicI64::new(0), told_ms: AtomicI64::new(i64::MIN) }
    }

    #[test]
    fn a_small_step_forward_is_followed_and_one_back_is_waited_for() {
        let machine = machine();
        assert_eq!(machine.now_ms(NOON + 90_000, 7_000), NOON + 90_000);
        assert_eq!(machine.now_ms(NOON - 90_000, 7_000), NOON + 90_000);
        assert_eq!(machine.now_ms(NOON + 89_000, 186_000), NOON + 90_000);
        assert_eq!(machine.now_ms(NOON + 91_000, 188_000), NOON + 91_000);
        assert_eq!(machine.leapt_ms.load(Ordering::Acquire), 0);
    }

    #[test]
    fn a_leap_is_not_followed_and_is_told() {
        for leap in [3_600_000, -3_600_000, 315_360_000_000, LEAP_MAX_MS + 1] {
            let machine = machine();
            assert_eq!(machine.now_ms(NOON + leap + 2_000, 9_000), NOON + 2_000, "{leap}");
            assert_eq!(machine.leapt_ms.load(Ordering::Acquire), leap);
        }
    }

    #[test]
    fn a_clock_that_was_put_right_is_believed_again() {
        let machine = machine();
        machine.now_ms(NOON + 3_600_000, 7_000);
        assert_eq!(machine.now_ms(NOON + 60_050, 67_000), NOON + 60_050);
        assert_eq!(machine.leapt_ms.load(Ordering::Acquire), 0);
    }
}
