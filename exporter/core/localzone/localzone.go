// Package localzone is the time zone of this host: what the calendar of load tests, quotas of a day and local dates use. The zone of a
// report is in serve/slareport.
//
// The standard library takes a zone that it cannot read for UTC, without an error.
package localzone

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Zone is where the local zone comes from. The zero value is not used; see Host.
type Zone struct {
	tz   string // the variable TZ
	set  bool   // TZ is set
	root fs.FS  // of the host
}

// Host is the zone of this process.
func Host() Zone {
	z := Zone{root: os.DirFS("/")}
	z.tz, z.set = os.LookupEnv("TZ")
	return z
}

// utc is the zone without a setting, and the one in place of an unknown zone.
const utc = "UTC"

// Name is the name of the zone, such as Europe/Berlin, and its abbreviation and offset at a time.
func (z Zone) Name(at time.Time) string {
	abbreviation, _ := at.Zone()
	name := z.name()
	if name == abbreviation || z.Check() != nil {
		return abbreviation
	}
	return fmt.Sprintf("%s (%s, %s)", name, abbreviation, at.Format("-07:00"))
}

// ID is the name of the zone in use, such as Europe/Berlin, without its offset: UTC where it cannot be read.
func (z Zone) ID() string {
	if z.Check() != nil {
		return utc
	}
	return z.name()
}

// name is the name of a zone that can be read.
func (z Zone) name() string {
	name := strings.TrimPrefix(z.tz, ":")
	switch target, err := fs.ReadLink(z.root, "etc/localtime"); {
	case z.set && name == "":
		return utc
	case !z.set && err == nil:
		name = target
	case !z.set && errors.Is(err, fs.ErrNotExist):
		return utc
	case !z.set:
		return "/etc/localtime" // a copy, without a name
	}
	if _, after, found := strings.Cut(name, "/zoneinfo/"); found {
		return after
	}
	return name
}

// Check reports a zone that is set and cannot be read: all local times are UTC then.
func (z Zone) Check() error {
	const remedy = "; write a name such as Europe/Berlin, or install the zone database (tzdata)"
	name := strings.TrimPrefix(z.tz, ":")
	switch {
	case !z.set:
		return z.checkFiles()
	case name == "" || isUTC(name):
		return nil
	case filepath.IsAbs(name):
		if err := z.checkFile(name); err != nil {
			return fmt.Errorf("the time zone TZ=%s is unknown, and UTC is used: %w%s", z.tz, err, remedy)
		}
		return nil
	}
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return fmt.Errorf("the time zone TZ=%s is unknown, and UTC is used%s", z.tz, remedy)
	}
	return nil
}

// isUTC reports a name of UTC, also as POSIX writes it. The database of zones may be missing.
func isUTC(name string) bool {
	return name == utc || name == "Etc/UTC" || name == "UTC0" || name == "GMT0" || name == "<UTC>0"
}

// checkFiles checks the zone of a host without TZ. A host without any setting has UTC.
func (z Zone) checkFiles() error {
	err := z.checkFile("/etc/localtime")
	if err == nil {
		return nil
	}
	if _, exists := fs.Lstat(z.root, "etc/localtime"); exists == nil {
		return fmt.Errorf("the time zone of /etc/localtime is unknown, and UTC is used: %w; link it to a file of the zone database (tzdata)", err)
	}
	for _, file := range []string{"etc/TZ", "etc/timezone"} { // of OpenWrt, and of Debian
		text, err := fs.ReadFile(z.root, file)
		zone := string(bytes.TrimSpace(text))
		if err == nil && zone != "" && !isUTC(zone) {
			return fmt.Errorf("the time zone of /%s, %s, is not used, but UTC: set the variable TZ to a name such as Europe/Berlin, or link /etc/localtime to a file of the zone database (tzdata)", file, zone)
		}
	}
	return nil
}

// checkFile reports a file that is no zone.
func (z Zone) checkFile(name string) error {
	content, err := fs.ReadFile(z.root, strings.TrimPrefix(name, "/"))
	if err == nil {
		_, err = time.LoadLocationFromTZData(name, content)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist", name)
	}
	return err
}
