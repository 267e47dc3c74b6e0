package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/tests/vmlab/record"
)

// mounts hide what must not be the host's: all else of the root is.
func mounts() [][3]string { // type, where, options
	return [][3]string{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"tmpfs", "/run", "mode=755"},
		{"tmpfs", "/tmp", "mode=1777"},
		{"tmpfs", "/var/lib/chrony", "mode=755"},
	}
}

// mount makes the guest's file systems; dir is its directory on the host.
func mount(dir string) error {
	for _, m := range mounts() {
		err := unix.Mount(m[0], m[1], m[0], 0, m[2])
		if err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	if err := os.Mkdir(record.Dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("none", record.Dir, "hostfs", 0, dir); err != nil {
		return fmt.Errorf("mount %s: %w", record.Dir, err)
	}
	return nil
}

// setUp makes a host of the bare kernel.
func setUp(boot record.Boot) error {
	if err := os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"); err != nil {
		return err
	}
	if boot.Devices {
		if err := unix.Mount("devtmpfs", "/dev", "devtmpfs", 0, ""); err != nil {
			return fmt.Errorf("mount /dev: %w", err)
		}
	}
	if err := os.Mkdir("/run/chrony", 0o750); err != nil { // chronyd refuses one that all can read
		return err
	}
	if err := unix.Sethostname([]byte(boot.Name)); err != nil {
		return err
	}
	if err := command("ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	if boot.Address == "" {
		return nil
	}
	return connect(boot.Address)
}

// connect puts a veth pair before vec0, whose driver takes no transmit stamps (none is
// in arch/um/drivers/vector_kern.c, whatever `ethtool -T` says); veth does. A delay that
// netem puts on vec0 lies behind the transmit stamp: it is the path's.
func connect(address string) error {
	if err := load([]string{"veth", "sch_ingress", "cls_matchall", "act_mirred"}); err != nil {
		return err
	}
	for _, line := range []string{
		"ip link add eth0 type veth peer name wire0",
		"tc qdisc add dev wire0 ingress",
		"tc qdisc add dev vec0 ingress",
		"tc filter add dev wire0 ingress matchall action mirred egress redirect dev vec0",
		"tc filter add dev vec0 ingress matchall action mirred egress redirect dev wire0",
		"ip address add " + address + " dev eth0",
		"ip link set vec0 up promisc on",
		"ip link set wire0 up",
	} {
		words := strings.Fields(line)
		if err := command(words[0], words[1:]...); err != nil {
			return err
		}
	}
	if err := inThread("wire0"); err != nil {
		return err
	}
	return command("ip", "link", "set", "eth0", "up")
}

// inThread hands what reaches a veth interface to a thread of its own. Else the path
// behind it, two system calls of the host, runs inside the call that sends a packet,
// and a packet counts as held by this host for as long.
func inThread(name string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	value := struct{ cmd, data uint32 }{unix.ETHTOOL_SGRO, 1} // makes veth receive by NAPI
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		rest [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("GRO of %s: %w", name, errno)
	}
	return os.WriteFile("/sys/class/net/"+name+"/threaded", []byte("1"), 0)
}

// command runs one to its end; the error says what it wrote.
func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// modules is where Debian's package user-mode-linux puts them, by release.
const modules = "/usr/lib/uml/modules"

// load loads kernel modules that need no other. One that the running kernel has
// built in, and so has no file of its own, is taken for there.
func load(names []string) error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	root := filepath.Join(modules, unix.ByteSliceToString(u.Release[:]))
	files := map[string]string{}
	if _, err := os.Stat(root); errors.Is(err, os.ErrNotExist) {
		return nil // of this kernel there is nothing but what is built in
	}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		files[strings.TrimSuffix(filepath.Base(path), ".ko")] = path
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		path, ok := files[name]
		if !ok {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("module %s: %w", name, err)
		}
	}
	return nil
}
