// Guest is the first process of a guest of the VM lab: it sets the guest up, does
// what the host says on the console, and keeps the log of the truth. Started with
// the word agent it is the agent instead: the one that oneway has, with each of its
// packets written down.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"oneway.example/tests/vmlab/record"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "agent":
		err = runAgent(os.Args[2], os.Args[3])
	case os.Getpid() == 1:
		err = runInit()
		fmt.Println("guest:", err)
		unix.Sync()
		_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // what comes after it never runs
	default:
		err = errors.New("usage: as the init of a guest kernel, or: guest agent CONFIG DIR")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

// runInit never returns without an error: that would be a panic of the kernel.
func runInit() error {
	if err := mount(os.Getenv(record.DirVariable)); err != nil {
		return err
	}
	boot, err := readBoot(filepath.Join(record.Dir, record.BootFile))
	if err != nil {
		return err
	}
	if err := setUp(boot); err != nil {
		return err
	}
	track, err := openShared(filepath.Join(record.Dir, record.TracksFile))
	if err != nil {
		return err
	}
	go keepTrack(track)
	return newConsole(boot).serve(os.Stdin, os.Stdout)
}

func readBoot(file string) (b record.Boot, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return b, err
	}
	return b, json.Unmarshal(text, &b)
}
