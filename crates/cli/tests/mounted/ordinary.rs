//! `croft` as an ordinary user: mounted by `fusermount3`, for that user alone, every byte by way of the machine.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use crate::cell::{Scratch, can_mount, needs, needs_root, skip, text};

/// As the script ends if the computer does not let it try.
const CANT: i32 = 77;

/// Ann is somebody whose name is known everywhere: `fusermount3` asks for it.
///
/// Whatever is mounted is so for these processes alone. `/dev/fuse` is for all users on most computers, and
/// becomes so here.
const SETTING: &str = r#"
mknod -m 666 device c 10 229 && mount --bind device /dev/fuse && chown nobody ann || exit 77
exec setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups sh -euc "$1"
"#;

/// Starts it, uses it, stops it, and finds the data when it is started again.
const USE: &str = r#"
exec 2>&1
cd ann
head -c 64 /dev/fuse 2>&1 | grep -q 'ermission denied' && exit 77
mkfifo said
start() {
    ../croft quickstart --dir "$PWD/quick" 2> said &
    pid=$!
    trap 'kill $pid' EXIT
    exec 3< said
    while read -r line <&3; do
        echo "$line"
        case $line in *Ctrl-C*) break;; esac
    done
}
stop() { kill -INT $pid; wait $pid; trap - EXIT; exec 3<&-; if mountpoint -q quick/mnt; then exit 1; fi; }
start
mountpoint -q quick/mnt
head -c 3000000 /dev/urandom > large
cd quick/mnt
test "$(stat -c %U .)" = nobody
mkdir d
echo small > a; cat a; echo more >> a
cp ../../large b; sync b; cmp b ../../large
printf here | dd of=b bs=1 seek=1000000 conv=notrunc status=none
printf here | dd of=../../large bs=1 seek=1000000 conv=notrunc status=none
cmp b ../../large
mv a d/c; ln d/c e; ln -s d/c f; test "$(stat -c %h e)" = 2
echo gone > g; rm g; test ! -e g
echo over > h; mv h e; cat e
chmod 600 e; if chown 0 e 2> /dev/null; then exit 1; fi
exec 4< b; rm b; cmp - ../../large <&4; exec 4<&-
cp ../../large b
cd ../..
stop
start
cat quick/mnt/d/c quick/mnt/f quick/mnt/e
cmp quick/mnt/b large
stop
echo all is well
"#;

#[test]
fn an_ordinary_user_mounts_writes_reads_renames_and_removes() {
    let programs = ["fusermount3", "setpriv", "unshare", "mountpoint"];
    if !can_mount() || !needs_root() || !programs.into_iter().all(needs) {
        return;
    }
    let scratch = Scratch::new();
    // Where it was built, others may not be able to go.
    fs::copy(env!("CARGO_BIN_EXE_croft"), scratch.0.join("croft")).unwrap();
    fs::set_permissions(scratch.0.join("croft"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(scratch.0.join("ann")).unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "timeout", "60", "sh", "-uc", SETTING, "sh", USE])
        .current_dir(&scratch.0);
    let output = command.env("HOME", scratch.0.join("ann")).output().unwrap();
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    if output.status.code() == Some(CANT) {
        return skip(&format!("no ordinary user can be given /dev/fuse here ({})", said.trim()));
    }
    assert!(output.status.success() && said.ends_with("all is well\n"), "{said}{}", output.status);
    assert!(
        said.contains("\nsmall\n") && said.contains("small\nmore\nsmall\nmore\nover\n"),
        "{said}"
    );
}
