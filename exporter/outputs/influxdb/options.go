package influxdb

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/collect"
	"oneway.example/exporter/output/point"
)

// Options are the keys of an output.
type Options struct {
	// URL is the base of the store's write API, such as "https://influxdb.example.net:8086".
	URL string `yaml:"url"`
	// Version of the write API: 1 for InfluxDB 1.8 and for Telegraf's influxdb_listener, 2, or 3.
	Version int `yaml:"version"`

	// Database is that of versions 1 and 3; RetentionPolicy of version 1, empty: the database's default.
	Database        string `yaml:"database"`
	RetentionPolicy string `yaml:"retention_policy"`
	// Org and Bucket are those of version 2.
	Org    string `yaml:"org"`
	Bucket string `yaml:"bucket"`

	// Username and the password in PasswordFile; or the token in TokenFile. The files are read for each request.
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
	TokenFile    string `yaml:"token_file"`

	// CAFile has the certificates of authorities that are trusted instead of the system's; CertFile and KeyFile are the
	// certificate of this client; they are read again after a request without a reply. ServerName is the name in the store's
	// certificate, if it is not that of the URL.
	CAFile     string `yaml:"ca_file"`
	CertFile   string `yaml:"cert_file"`
	KeyFile    string `yaml:"key_file"`
	ServerName string `yaml:"server_name"`

	// Interval of the series.
	Interval time.Duration `yaml:"interval"`
	// Tags are added to every point. The tag host is this host's name unless it is set here; an empty value removes it.
	Tags map[string]string `yaml:"tags"`
	// FirstRows and MaxRows limit the packets of a run; see collect.Options.
	FirstRows time.Duration `yaml:"first_rows"`
	MaxRows   int           `yaml:"max_rows"`

	// BatchPoints and BatchBytes limit a request, before it is compressed.
	BatchPoints int          `yaml:"batch_points"`
	BatchBytes  option.Bytes `yaml:"batch_bytes"`
	Gzip        bool         `yaml:"gzip"`
	// Timeout is that of a request, with its reply.
	Timeout time.Duration `yaml:"timeout"`

	Spool SpoolOptions `yaml:"spool"`
}

// SpoolOptions are the settings of the queue of undelivered points.
type SpoolOptions struct {
	// Directory; nil: outputs/NAME in the state directory, if there is one; empty: the queue is in memory.
	Directory *string `yaml:"directory"`
	// MaxBytes is its limit, compressed; 0: the default.
	MaxBytes option.Bytes `yaml:"max_bytes"`
}

// Defaults of SpoolOptions.MaxBytes.
const (
	spoolBytes  = 256_000_000
	memoryBytes = 16_000_000
)

// Limits of options.
const (
	minTimeout, maxTimeout = 100 * time.Millisecond, 5 * time.Minute
	maxBatchPoints         = 100_000
	minBatchBytes          = 4 << 10
	maxBatchBytes          = 64 << 20
	minSpoolBytes          = 256 << 10
	newest                 = 3 // version of the write API
	defaultVersion         = 2 // of the write API
	maxSpoolBytes          = 1 << 40
)

// Describe returns the descriptions of the keys.
func (o *Options) Describe() []option.Description {
	c := collect.DefaultOptions()
	return []option.Description{
		option.Text(&o.URL, "Base of the store's write API.").WithExample("https://influxdb.example.net:8086").Required("it must be the address of the store, %s", urlExample),
		option.Number(&o.Version, defaultVersion, 1, newest, "Version of the write API: 1 for InfluxDB 1.8 and for Telegraf's influxdb_listener, 2, or 3."),
		option.Text(&o.Org, "Organization, of version 2.").WithExample("example"),
		option.Text(&o.Bucket, "Bucket, of version 2.").WithExample("oneway"),
		option.Text(&o.Database, "Database, of versions 1 and 3.").WithExample("oneway"),
		option.Text(&o.RetentionPolicy, "Retention policy, of version 1.").Unset("the database's default").WithExample("raw"),
		option.Text(&o.TokenFile, "File with the token. It is read for each request.").WithExample("influxdb.token"),
		option.Text(&o.Username, "Name of the user, with a {password_file} instead of a token.").WithExample("oneway"),
		option.Text(&o.PasswordFile, "File with the password of {username}. It is read for each request.").WithExample("influxdb.password"),
		option.Text(&o.CAFile, "CA certificates (PEM) for the store. They are read again after a request without a reply.").Unset("the authorities of the system").WithExample("clients.pem"),
		option.Text(&o.CertFile, "Certificate of this client (PEM). It is read again after a request without a reply.").WithExample("cert.pem"),
		option.Text(&o.KeyFile, "Private key of {cert_file} (PEM).").WithExample("key.pem"),
		option.Text(&o.ServerName, "Name in the store's certificate.").Unset("the host of {url}").WithExample("influxdb.example.net"),
		option.Number(&o.Interval, c.Interval, collect.MinInterval, collect.MaxInterval, "Interval of the series.").Checked(nil), // collect checks it, and the next ones
		option.Value(&o.Tags, nil, "Tags of every point. The tag host is this host's name unless it is set; an empty value removes it.").WithExample("{site: lab}"),
		option.Number(&o.FirstRows, c.FirstRows, 0, collect.MaxFirstRows, "Time at the beginning of each transfer of a load test of which all packets are delivered.").Checked(nil),
		option.Number(&o.MaxRows, c.MaxRows, 0, collect.MaxMaxRows, "Number of packets of a transfer that are delivered, {first_rows} included.").Checked(nil),
		option.Number(&o.BatchPoints, 5000, 1, maxBatchPoints, "Largest number of points of a request."),
		option.Number(&o.BatchBytes, 1_000_000, minBatchBytes, maxBatchBytes, "Largest size of a request, before it is compressed."),
		option.Switch(&o.Gzip, true, "Compress the requests."),
		option.Number(&o.Timeout, 10*time.Second, minTimeout, maxTimeout, "Time for a request with its reply."),
		option.Value(&o.Spool.Directory, nil, "Directory of the compressed points that wait, an absolute path; \"\" keeps them in memory.").Unset("outputs/NAME in {state_dir}").
			WithExample("/var/lib/oneway/outputs/influxdb").Checked(o.checkSpool),
		option.Number(&o.Spool.MaxBytes, 0, minSpoolBytes, maxSpoolBytes, "Limit of the compressed points that wait; the oldest are dropped.").
			Unset(fmt.Sprintf("%s, or %s in memory", option.String(option.Bytes(spoolBytes)), option.String(option.Bytes(memoryBytes)))).WithExample(option.String(option.Bytes(spoolBytes))),
	}
}

// Groups returns the description of the group of keys.
func (*Options) Groups() map[string]string {
	return map[string]string{"spool": "The queue of what the store has not accepted yet."}
}

// DefaultOptions are the values of keys that are not given.
func DefaultOptions() Options { return option.Defaults[Options]() }

// checkSpool checks the directory of the spool.
func (o *Options) checkSpool(key string) error {
	if d := *o.Spool.Directory; d != "" && !filepath.IsAbs(d) {
		return option.Errorf(key, "is %q; it must be an absolute path, such as /var/lib/oneway/outputs/influxdb", d)
	}
	return nil
}

// collect are the options of the collector, with its tags.
func (o *Options) collect(tags []point.Tag) collect.Options {
	return collect.Options{Interval: o.Interval, Tags: tags, FirstRows: o.FirstRows, MaxRows: o.MaxRows}
}

// check reports wrong values. It reads the files of secrets and certificates.
func (o *Options) check() (target *url.URL, config *tls.Config, err error) {
	target, wrong := address(o.URL)
	collected := o.collect(nil)
	errs := []error{wrong, o.checkTarget(), o.checkSecrets(), collected.Check()}
	config, wrong = o.tls()
	errs = append(errs, wrong, option.Check(o))
	return target, config, errors.Join(errs...)
}

// urlExample is a part of messages.
const urlExample = "such as https://influxdb.example.net:8086"

// address reads the URL, which has no secret: it is shown in the status.
func address(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil // the description reports it
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, option.Errorf("url", "is no address of a store; it must begin with http:// or https:// and a host, %s", urlExample)
	case u.User != nil:
		return nil, option.Errorf("url", "has a user name; use the keys username and password_file")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, option.Errorf("url", "has a query; it must end with the host or a path, %s", urlExample)
	case strings.HasSuffix(u.Path, "/write") || strings.HasSuffix(u.Path, "/write_lp"):
		return nil, option.Errorf("url", "has the path of a write API, which the output adds; leave it out, %s", urlExample)
	}
	return u, nil
}

// checkTarget checks the keys that name the database.
func (o *Options) checkTarget() error {
	keys := []struct {
		key, value string
		versions   []int
		required   bool
	}{
		{"database", o.Database, []int{1, 3}, true},
		{"retention_policy", o.RetentionPolicy, []int{1}, false},
		{"org", o.Org, []int{2}, true},
		{"bucket", o.Bucket, []int{2}, true},
	}
	if o.Version < 1 || o.Version > newest {
		return nil // the description reports it
	}
	if o.Version == defaultVersion && o.Database != "" && o.Org+o.Bucket == "" {
		return option.Errorf("database", "is not an option of version %d, the default; set version: 1 for InfluxDB 1.8, 3 for InfluxDB 3, or org and bucket", defaultVersion)
	}
	var errs []error
	for _, k := range keys {
		switch used := slices.Contains(k.versions, o.Version); {
		case used && k.required && k.value == "":
			errs = append(errs, option.Errorf(k.key, "is missing; version %d needs it", o.Version))
		case !used && k.value != "":
			errs = append(errs, option.Errorf(k.key, "is not an option of version %d", o.Version))
		}
	}
	return errors.Join(errs...)
}

// checkSecrets checks that the secrets can be read and belong together.
func (o *Options) checkSecrets() error {
	switch {
	case o.TokenFile != "" && (o.Username != "" || o.PasswordFile != ""):
		return option.Errorf("token_file", "excludes username and password_file")
	case o.Username == "" && o.PasswordFile != "":
		return option.Errorf("username", "is missing; username and password_file belong together")
	case o.Username != "" && o.PasswordFile == "":
		return option.Errorf("password_file", "is missing; username and password_file belong together")
	}
	for key, file := range map[string]string{"password_file": o.PasswordFile, "token_file": o.TokenFile} {
		if file != "" {
			if _, err := keyfile.Load(file); err != nil {
				return option.Errorf(key, "cannot be used: %v", err)
			}
		}
	}
	return nil
}

// tls is the configuration of TLS; nil without https.
func (o *Options) tls() (*tls.Config, error) {
	if !strings.HasPrefix(o.URL, "https:") {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if o.CAFile != "" {
		var err error
		if c.RootCAs, err = keyfile.CAs(o.CAFile); err != nil {
			return nil, option.Errorf("ca_file", "cannot be used: %v", err)
		}
	}
	switch {
	case (o.CertFile == "") != (o.KeyFile == ""):
		return nil, option.Errorf("cert_file", "and key_file belong together")
	case o.CertFile != "":
		pair, err := keyfile.KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, option.Errorf("cert_file", "cannot be used: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// exposed reports whether the secrets are sent over a network without encryption.
func (o *Options) exposed(to *url.URL) bool {
	if o.TokenFile == "" && o.Username == "" || to.Scheme != "http" || to.Hostname() == "localhost" {
		return false
	}
	a, err := netip.ParseAddr(to.Hostname())
	return err != nil || !a.IsLoopback()
}

// tags are those of every point. They must not have a key of the points of these groups.
func (o *Options) tags(env output.Env) (tags []point.Tag, err error) {
	if _, given := o.Tags["host"]; !given {
		name, err := os.Hostname()
		if err == nil && name != "" {
			tags = append(tags, point.Tag{Key: "host", Value: name})
		}
	}
	for key, value := range o.Tags {
		if value != "" {
			tags = append(tags, point.Tag{Key: key, Value: value})
		}
	}
	slices.SortFunc(tags, func(a, b point.Tag) int { return cmp.Compare(a.Key, b.Key) })
	if err := collect.CheckTags(env, tags); err != nil {
		return nil, option.Errorf("tags", "cannot be used: %v", err)
	}
	return tags, nil
}

// spool is the directory of the spool and its limit.
func (o *Options) spool(env *output.Env) (dir string, limit int64) {
	switch {
	case o.Spool.Directory != nil:
		dir = *o.Spool.Directory
	case env.StateDir != "":
		dir = filepath.Join(env.StateDir, "outputs", url.PathEscape(env.Name))
	}
	if dir == "" {
		return dir, int64(cmp.Or(o.Spool.MaxBytes, memoryBytes))
	}
	return dir, int64(cmp.Or(o.Spool.MaxBytes, spoolBytes))
}

// endpoint is the address of the write API with its parameters.
func (o *Options) endpoint(base *url.URL) string {
	var path string
	query := url.Values{}
	set := func(key, value string) {
		if value != "" {
			query.Set(key, value)
		}
	}
	set("precision", "ns")
	switch o.Version {
	case 1:
		path = "write"
		set("db", o.Database)
		set("rp", o.RetentionPolicy)
	case 2:
		path = "api/v2/write"
		set("org", o.Org)
		set("bucket", o.Bucket)
	case 3:
		path = "api/v3/write_lp"
		set("db", o.Database)
		set("precision", "nanosecond")
		set("accept_partial", "true")
	}
	u := base.JoinPath(path)
	u.RawQuery = query.Encode()
	return u.String()
}

// destination is the text of the status.
func (o *Options) destination() string {
	switch {
	case o.Version == 2:
		return o.URL + ", bucket " + o.Bucket + " of " + o.Org
	case o.RetentionPolicy != "":
		return o.URL + ", database " + o.Database + ", retention policy " + o.RetentionPolicy
	}
	return o.URL + ", database " + o.Database
}
