package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/agent/maintenance"
	"oneway.example/exporter/core/document"
)

const maintenanceAddHelp = `Add a time of planned work to the agent of this host.

The alerts of the selected paths are quiet until its end and 6 minutes after, reports leave
the time out, and pages and dashboards say so. Measurements go on, load tests too. A path is
selected by any of the flags; in --path and --peer, * is any text and ? any character.

The window is stored in the agent's state_dir and survives a restart. Its ID is printed: "end"
takes it. The agent is asked over its socket, which only root, the agent's user and the group of
its flag --test.socket-group may use.

Examples:
  oneway maintenance add --path berlin-to-hamburg --for 2h --reason "new router"
  oneway maintenance add --site hamburg --from 2026-12-01T22:00:00+01:00 --to 2026-12-02T04:00:00+01:00 --reason "new fiber"
  oneway maintenance add --all --weekly "sun 02:00-04:00" --reason "updates of the host"

Exit status: 0 added, 1 failure, 2 wrong usage.`

const maintenanceListHelp = `List the times of planned work of this host's agent.

They are the windows of its configuration (section maintenance), and those that were added.
/api/v1/status has them, too.

Examples:
  oneway maintenance list
  oneway maintenance list --json | jq -r '.windows[] | select(.open and .id) | .id'   (what "end" can end)

Exit status: 0 listed, 1 failure, 2 wrong usage.`

const maintenanceEndHelp = `End, or remove, a time of planned work that was added.

A window of the configuration ends there, by a change of the file and a reload.

Examples:
  oneway maintenance end m3

Exit status: 0 ended, 1 failure, 2 wrong usage.`

// maintenanceFlags are the flags of a window.
type maintenanceFlags struct {
	socket   string
	window   maintenance.Window
	from, to string
	weekly   []string
	length   time.Duration
	id       string
	json     bool
}

// maintenanceDocument is the output of `oneway maintenance list --json`.
type maintenanceDocument struct {
	document.Envelope
	// Windows are open or will be: the ones of the configuration first, in its order.
	Windows []maintenance.Entry `json:"windows"`
}

func maintenanceCommand(app *kingpin.Application) {
	parent := app.Command("maintenance", "Times of planned work of this host's agent: their alerts are quiet.")
	command := func(name, help string, flags func(*maintenanceFlags, *kingpin.CmdClause), run func(*maintenanceFlags, context.Context, io.Writer) error) {
		f := &maintenanceFlags{}
		cmd := parent.Command(name, help)
		flags(f, cmd)
		cmd.Flag("agent-socket", "The agent's UNIX socket (test.socket of \"oneway agent\"). Default: "+linklease.DefaultSocket+".").Default(linklease.DefaultSocket).PlaceHolder("PATH").StringVar(&f.socket)
		cmd.Action(interruptible(func(ctx context.Context) error { return run(f, ctx, os.Stdout) }))
	}
	command("add", maintenanceAddHelp, (*maintenanceFlags).addFlags, (*maintenanceFlags).add)
	command("list", maintenanceListHelp, func(f *maintenanceFlags, cmd *kingpin.CmdClause) {
		cmd.Flag("json", "Print a JSON document.").BoolVar(&f.json)
	}, (*maintenanceFlags).list)
	command("end", maintenanceEndHelp, func(f *maintenanceFlags, cmd *kingpin.CmdClause) {
		cmd.Arg("id", "ID of the window, as list shows it.").Required().StringVar(&f.id)
	}, (*maintenanceFlags).end)
}

func (f *maintenanceFlags) addFlags(cmd *kingpin.CmdClause) {
	w := &f.window
	cmd.Flag("path", "Name of a path, or a pattern; repeatable.").PlaceHolder("NAME").StringsVar(&w.Paths)
	cmd.Flag("peer", "Host at the other end, or a pattern; repeatable.").PlaceHolder("HOST").StringsVar(&w.Peers)
	cmd.Flag("link", "Link of paths; repeatable.").PlaceHolder("NAME").StringsVar(&w.Links)
	cmd.Flag("site", "Value of the label site of paths; repeatable.").PlaceHolder("NAME").StringsVar(&w.Sites)
	cmd.Flag("all", "All paths, and the agent itself.").BoolVar(&w.All)
	cmd.Flag("from", "When it begins, such as 2026-12-01T22:00:00+01:00. Default: now.").PlaceHolder("TIME").StringVar(&f.from)
	cmd.Flag("to", "When it ends, such as 2026-12-02T04:00:00+01:00.").PlaceHolder("TIME").StringVar(&f.to)
	cmd.Flag("for", "How long it lasts, in place of --to, such as 2h30m.").PlaceHolder("DURATION").DurationVar(&f.length)
	cmd.Flag("weekly", "Local times of the week, by the agent's calendar, such as \"sun 02:00-04:00\"; repeatable.").PlaceHolder("TIMES").StringsVar(&f.weekly)
	cmd.Flag("reason", "What the work is, for people.").Required().StringVar(&w.Reason)
}

// times completes the window by the flags of its time.
func (f *maintenanceFlags) times(now time.Time) error {
	w := &f.window
	for _, one := range []struct {
		flag, text string
		into       *time.Time
	}{{"--from", f.from, &w.From}, {"--to", f.to, &w.To}} {
		if one.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, one.text)
		if err != nil {
			return usageError{fmt.Errorf("%s is %q; it must be a time with its offset from UTC, such as 2026-12-01T22:00:00+01:00", one.flag, one.text)}
		}
		*one.into = at
	}
	var err error
	if w.Weekly, err = maintenance.ParseWeekly(f.weekly); err != nil {
		return usageError{asFlags(err)}
	}
	switch {
	case f.length < 0:
		return usageError{fmt.Errorf("--for is %v; it must be above 0s", f.length)}
	case f.length > 0 && f.to != "":
		return usageError{errors.New("--for and --to are both given; one of them is enough")}
	case f.length > 0 && len(w.Weekly) == 0:
		if w.From.IsZero() {
			w.From = now.Truncate(time.Second)
		}
		w.To = w.From.Add(f.length)
	case f.length > 0:
		return usageError{errors.New("--for is given beside --weekly; the times of the week have their ends")}
	}
	return nil
}

// check reports a wrong window with the names of flags.
func (f *maintenanceFlags) check() error {
	w := f.window
	if w.From.IsZero() && !w.To.IsZero() {
		w.From = time.Now()
	}
	switch {
	case w.String() == "":
		return usageError{errors.New("nothing is selected; it must have --path, --peer, --link, --site or --all")}
	case w.From.IsZero() && len(w.Weekly) == 0 || !w.From.IsZero() && w.To.IsZero() && len(w.Weekly) == 0:
		return usageError{errors.New("the end is missing; it must have --for, --to or --weekly, since a window without an end would silence alerts forever")}
	}
	if err := w.Check(); err != nil {
		return usageError{asFlags(err)}
	}
	if !w.To.IsZero() && !w.To.After(time.Now()) {
		return usageError{fmt.Errorf("--to is %s, which is past", w.To.Format(time.RFC3339))}
	}
	return nil
}

var entryRE = regexp.MustCompile(`^(from|to|weekly|reason|path|peer|link|site)s?(\[\d+\])?$`)

// asFlags are the errors of a window with the names of flags in place of keys.
func asFlags(err error) error {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, asFlags(one))
		}
		return errors.Join(all...)
	}
	if field, is := errors.AsType[*maintenance.FieldError](err); is {
		if name := entryRE.FindStringSubmatch(field.Key); name != nil {
			return fmt.Errorf("--%s %s", name[1], field.Problem)
		}
	}
	return err
}

func (f *maintenanceFlags) add(ctx context.Context, out io.Writer) error {
	err := f.times(time.Now())
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return err
	}
	var added agent.MaintenanceAdded
	if err := f.ask(ctx, agent.OpMaintenanceAdd, f.window, &added); err != nil {
		return err
	}
	stored := ""
	if !added.Stored {
		stored = "The agent has no state_dir: the window ends with a restart.\n"
	}
	socket := ""
	if f.socket != linklease.DefaultSocket {
		socket = "--agent-socket=" + f.socket + " "
	}
	_, err = fmt.Fprintf(out, "Window %s: %s, %s (%s selected).\n%sEnd it by: oneway maintenance end %s%s\n",
		added.ID, added.String(), added.Times(time.Local), numberOf(added.Selected, "path"), stored, socket, added.ID)
	return err
}

// numberOf is a number of things.
func numberOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

func (f *maintenanceFlags) end(ctx context.Context, out io.Writer) error {
	var ended maintenance.Window
	if err := f.ask(ctx, agent.OpMaintenanceEnd, agent.MaintenanceID{ID: f.id}, &ended); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "Window %s has ended: %s (%s).\n", ended.ID, ended.String(), ended.Reason)
	return err
}

func (f *maintenanceFlags) list(ctx context.Context, out io.Writer) error {
	var all []maintenance.Entry
	if err := f.ask(ctx, agent.OpMaintenanceList, struct{}{}, &all); err != nil {
		return err
	}
	if f.json {
		return printed(out, maintenanceDocument{document.New(document.Maintenance), all}, nil)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "No maintenance is planned.")
		return err
	}
	t := newTable(out, "Maintenance (times are local; weekly ones by the agent's calendar)")
	t.names("id", "now", "selects", "times", "reason")
	for i := range all {
		e := &all[i]
		now := "-"
		switch {
		case e.Open:
			now = "until " + local(e.Until)
		case !e.Next.IsZero():
			now = "from " + local(e.Next)
		}
		t.row(cmp.Or(e.ID, "file"), now, e.String(), e.Times(time.Local), e.Reason)
	}
	return t.end()
}

// local is a time in the zone of this terminal.
func local(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// ask asks the agent of this host.
func (f *maintenanceFlags) ask(ctx context.Context, op string, body, found any) error {
	err := linklease.Ask(ctx, f.socket, op, body, found)
	none, isNone := errors.AsType[*linklease.NoAgentError](err)
	switch {
	case isNone:
		return fmt.Errorf("no agent of this host can be asked: %s; does it run, and is --agent-socket its --test.socket?", none.Why)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: run this as root, as the agent's user, or as a member of the group of its flag --test.socket-group", err)
	}
	return err
}
