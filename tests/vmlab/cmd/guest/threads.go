package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// first lets the kernel's threads whose names begin so go before all processes, or, not
// on, has them wait for their turn again.
func first(names []string, on bool) error {
	attributes := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
	if on {
		attributes.Policy, attributes.Priority = unix.SCHED_FIFO, 1
	}
	for _, name := range names {
		threads, err := threadsNamed(name)
		if err != nil {
			return err
		}
		if len(threads) == 0 {
			return fmt.Errorf("no thread %s", name)
		}
		for _, t := range threads {
			if err := unix.SchedSetAttr(t, &attributes, 0); err != nil {
				return fmt.Errorf("thread %s: %w", name, err)
			}
		}
	}
	return nil
}

func threadsNamed(prefix string) (threads []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		comm, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(comm), prefix) {
			continue // ended meanwhile, or another
		}
		thread, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		threads = append(threads, thread)
	}
	return threads, nil
}
