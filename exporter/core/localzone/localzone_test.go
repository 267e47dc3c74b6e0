package localzone

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database
)

// hostWith is a host with files; one that begins with "->" is a link.
func hostWith(t *testing.T, files map[string]string) Zone {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		target, link := strings.CutPrefix(content, "->")
		err := os.WriteFile(file, []byte(content), 0o600)
		if link {
			err = os.Symlink(target, file+".link")
			if err == nil {
				err = os.Rename(file+".link", file)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Zone{root: os.DirFS(dir)}
}

// minimal is the shortest file of a zone (RFC 8536): version 1, one type, no transition.
const minimal = "TZif\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x0e\x10\x00\x00CET\x00"

func TestZoneThatCannotBeReadIsNotTakenForUTC(t *testing.T) {
	unset := func(files map[string]string) Zone { return hostWith(t, files) }
	tz := func(value string) Zone {
		z := hostWith(t, map[string]string{"zones/good": minimal, "zones/bad": "no zone"})
		z.tz, z.set = value, true
		return z
	}
	for name, c := range map[string]struct {
		zone Zone
		want string // a part of the warning; empty: none
	}{
		"name":                      {tz("Europe/Berlin"), ""},
		"name, with a colon":        {tz(":Europe/Berlin"), ""},
		"UTC":                       {tz("UTC"), ""},
		"empty":                     {tz(""), ""},
		"fixed":                     {tz("Etc/GMT+5"), ""},
		"file":                      {tz("/zones/good"), ""},
		"POSIX":                     {tz("CET-1CEST,M3.5.0,M10.5.0/3"), "TZ=CET-1CEST,M3.5.0,M10.5.0/3 is unknown, and UTC is used; write a name"},
		"misspelled":                {tz("Europe/Berln"), "TZ=Europe/Berln is unknown"},
		"POSIX, short":              {tz("CST6"), "TZ=CST6 is unknown"},
		"Local":                     {tz("Local"), "TZ=Local is unknown"},
		"UTC of POSIX":              {tz("UTC0"), ""},
		"west of UTC of POSIX":      {tz("UTC5"), "TZ=UTC5 is unknown"},
		"space":                     {tz(" Europe/Berlin"), "is unknown"},
		"missing file":              {tz("/zones/none"), "/zones/none does not exist"},
		"file without a zone":       {tz(":/zones/bad"), "is unknown"},
		"host without a zone":       {unset(nil), ""},
		"host with a zone":          {unset(map[string]string{"etc/localtime": minimal}), ""},
		"damaged localtime":         {unset(map[string]string{"etc/localtime": "x"}), "/etc/localtime is unknown"},
		"dangling localtime":        {unset(map[string]string{"etc/localtime": "->../usr/share/zoneinfo/Europe/Berlin"}), "/etc/localtime does not exist"},
		"OpenWrt":                   {unset(map[string]string{"etc/TZ": "CET-1CEST,M3.5.0,M10.5.0/3\n"}), "/etc/TZ, CET-1CEST,M3.5.0,M10.5.0/3, is not used"},
		"OpenWrt with UTC":          {unset(map[string]string{"etc/TZ": "UTC0\n"}), ""},
		"container with a timezone": {unset(map[string]string{"etc/timezone": "Asia/Tokyo\n"}), "/etc/timezone, Asia/Tokyo, is not used"},
	} {
		if err := c.zone.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

func TestNameSaysWhichZoneIsUsed(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	summer := time.Date(2026, 7, 1, 12, 0, 0, 0, berlin)
	linked := hostWith(t, map[string]string{"usr/share/zoneinfo/Europe/Berlin": minimal, "etc/localtime": "->../usr/share/zoneinfo/Europe/Berlin"})
	for want, c := range map[string]struct {
		zone Zone
		at   time.Time
	}{
		"Europe/Berlin (CEST, +02:00)":  {Zone{tz: ":Europe/Berlin", set: true, root: linked.root}, summer},
		"Europe/Berlin (CET, +01:00)":   {linked, summer.AddDate(0, 6, 0)},
		"/etc/localtime (CEST, +02:00)": {hostWith(t, map[string]string{"etc/localtime": minimal}), summer},
		"UTC":                           {Zone{tz: "Europe/Berln", set: true, root: linked.root}, summer.UTC()},
	} {
		if got := c.zone.Name(c.at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := hostWith(t, nil).Name(summer.UTC()); got != "UTC" {
		t.Errorf("a host without a zone: %q", got)
	}
}
