package vmlab

import (
	"fmt"
	"os"
	"path/filepath"
)

// KeepLogs moves the guests' files from memory, the directory from, to where they can be read, and removes that directory.
// Each guest has a directory of its name in both.
func KeepLogs(from, to string, guests ...string) error {
	for _, name := range guests {
		files, err := filepath.Glob(filepath.Join(from, name, "*.*"))
		if err != nil {
			return fmt.Errorf("vmlab: %w", err)
		}
		if err := os.MkdirAll(filepath.Join(to, name), 0o755); err != nil {
			return fmt.Errorf("vmlab: %w", err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("vmlab: %w", err)
			}
			if err := os.WriteFile(filepath.Join(to, name, filepath.Base(file)), b, 0o644); err != nil {
				return fmt.Errorf("vmlab: %w", err)
			}
		}
	}
	if err := os.RemoveAll(from); err != nil {
		return fmt.Errorf("vmlab: %w", err)
	}
	return nil
}
