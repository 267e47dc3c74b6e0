// Package errtext makes the texts of errors for people, who do not know the packages of this program.
package errtext

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

//go:generate go test -count=1 -run TestPackagesAreThoseOfTheSource . -args -update

//go:embed packages.txt
var packages string

// Packages lists the packages of this program that begin errors with their names, except Kept.
func Packages() []string { return strings.Fields(packages) }

// Kept are the packages whose names stay, as people know them: sections of the configuration, keys of a section, or other programs.
func Kept() []string {
	return []string{"agent", "chrony", "clock", "config", "gpsd", "link", "pps", "reflector", "report"}
}

// libraries are packages of Go and of others that begin errors with their names.
func libraries() []string { return []string{"json", "tls", "x509", "yaml"} }

// beginnings matches the names of packages that begin parts of a text.
var beginnings = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|: |; |\(|\n)(?:(?:` + strings.Join(slices.Concat(Packages(), libraries()), "|") + `): )+`)
})

// ForbiddenBy is what refuses packets of this host with EPERM: netfilter drops them by a rule, or as the packet of a new flow.
const ForbiddenBy = "`nft list ruleset` shows the rules of its firewall, and `sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max` whether its table of connections is full"

// Forbidden names what refuses packets with EPERM in few words, and Refused what refuses them with any error; "its" is the host's.
const (
	Forbidden = "its firewall or its full table of connections (nf_conntrack)"
	Refused   = "its firewall, its full table of connections (nf_conntrack), its routes, or a full queue of its own"
)

// Words is the text of an error without the names of packages that begin its parts.
func Words(err error) string { return beginnings().ReplaceAllString(err.Error(), "$1") }

// WordsWithin is Words for a text that names a kept package already: an error that begins with this name continues without it.
func WordsWithin(kept string, err error) string { return strings.TrimPrefix(Words(err), kept+": ") }

// Handler passes records on, with the texts of their errors.
type Handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	to := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		to.AddAttrs(worded(a))
		return true
	})
	return h.Handler.Handle(ctx, to)
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	all := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		all[i] = worded(a)
	}
	return Handler{h.Handler.WithAttrs(all)}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler { return Handler{h.Handler.WithGroup(name)} }

func worded(a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(Words(err))
	}
	return a
}

// NoDescriptors reports whether a file or a connection could not be opened since no file descriptor was left: of the process
// (EMFILE), or of the host (ENFILE). Errors of the resolver have the text of their cause alone.
func NoDescriptors(err error) bool {
	return err != nil && slices.ContainsFunc([]syscall.Errno{syscall.EMFILE, syscall.ENFILE}, func(why syscall.Errno) bool {
		return errors.Is(err, why) || strings.Contains(err.Error(), why.Error())
	})
}
