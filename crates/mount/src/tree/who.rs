//! In which further groups a process is: a request does not say.

use crate::front::Caller;

/// Those that the kernel names, as many as an actor may have.
pub(super) fn further_groups(caller: &Caller) -> Vec<u32> {
    let status = match caller.pid {
        0 => String::new(),
        pid => std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default(),
    };
    parse(&status)
}

fn parse(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    let groups = line.unwrap_or_default().split_ascii_whitespace();
    groups.filter_map(|group| group.parse().ok()).take(directory::Actor::GROUPS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse("Name:\tcat\nGroups:\t4 24 1000 \nPid:\t7\n"), [4, 24, 1000]);
        assert_eq!(parse("Groups:\t \n"), Vec::<u32>::new());
        assert_eq!(parse("nothing of the sort"), Vec::<u32>::new());
    }

    #[test]
    fn no_more_groups_are_taken_than_an_actor_may_have() {
        let many: Vec<String> = (0..1_000).map(|group| group.to_string()).collect();
        let status = format!("Groups:\t{}\n", many.join(" "));
        assert_eq!(parse(&status).len(), directory::Actor::GROUPS_MAX);
    }

    #[test]
    fn a_process_that_is_not_known_is_in_no_further_group() {
        assert!(further_groups(&Caller { uid: 1, gid: 1, pid: 0 }).is_empty());
    }
}
