package scene

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oneway.example/exporter/core/localday"
)

// holidaysOf reads the holidays of a site as an agent does, from a file; nil: the site has no list.
func holidaysOf(site Site) (*localday.Holidays, error) {
	if len(site.Holidays) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "holidays")
	if err != nil {
		return nil, fmt.Errorf("scene: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, site.Name+".txt")
	if err := os.WriteFile(file, []byte(strings.Join(site.Holidays, "\n")+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("scene: %w", err)
	}
	list, err := localday.ReadHolidays(file, time.Now())
	if err != nil {
		return nil, fmt.Errorf("scene: holidays of %s: %w", site.Name, err)
	}
	return list, nil
}

// Phase is how long after a full hour of UTC the full hours of a zone are: 0, 15, 30 or 45 min. It is the same all year in the zones of
// the mesh.
func Phase(site Site) (time.Duration, error) {
	zone, err := time.LoadLocation(site.Zone)
	if err != nil {
		return 0, fmt.Errorf("scene: zone of %s: %w", site.Name, err)
	}
	_, now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).In(zone).Zone()
	phase := -time.Duration(now) * time.Second % time.Hour
	return (phase + time.Hour) % time.Hour, nil
}
