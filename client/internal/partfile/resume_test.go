package partfile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// text returns bytes of a resource. No two blocks of them are equal.
func text(seed string, size int) (all []byte) {
	for i := 0; len(all) < size; i++ {
		sum := sha256.Sum256(fmt.Append(nil, seed, i))
		all = append(all, sum[:]...)
	}
	return all[:size]
}

// resourceOf returns a resource with these bytes.
func resourceOf(content []byte, etag string) transport.Resource {
	return transport.Resource{Size: quantity.Bytes(len(content)), ETag: etag, LastModified: resource.LastModified}
}

// write writes ranges of the content.
func write(t *testing.T, f *File, content []byte, parts ...ranges.Range) {
	t.Helper()
	for _, r := range parts {
		writeAt(t, f, content[r.Offset:r.End()], int64(r.Offset))
	}
}

// missing returns the ranges of the whole that are missing.
func missing(size quantity.Bytes, have []ranges.Range) []ranges.Range {
	all := ranges.NewSet(ranges.Range{Length: size})
	for _, r := range have {
		all.Remove(r)
	}
	return all.Ranges()
}

// names returns the files in the directory of a file.
func names(t *testing.T, name string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(name))
	testkit.OK(t, err)
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

// expectNames fails unless the directory holds these files.
func expectNames(t *testing.T, name string, want ...string) {
	t.Helper()
	testkit.Alike(t, names(t, name), want)
}

// finish writes the missing ranges, and fails unless the file has the content.
func finish(t *testing.T, f *File, have []ranges.Range, content []byte) {
	t.Helper()
	write(t, f, content, missing(quantity.Bytes(len(content)), have)...)
	commit(t, f)
	if got, err := os.ReadFile(f.Name); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file is wrong (%v)", err)
	}
	expectNames(t, f.Name, "file")
}

const mostOfIt = 300_000

var most = ranges.Range{Length: mostOfIt}

// interrupted leaves most of the content in a part, and returns the options of the call.
func interrupted(t *testing.T, content []byte, change func(*Options)) Options {
	t.Helper()
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f?signature=1"}
	if change != nil {
		change(&o)
	}
	f, _ := begin(t, o, resourceOf(content, `"1"`))
	write(t, f, content, most)
	abort(t, f, false)
	return o
}

// refuse fails unless a call refuses the earlier part, which stays as it was.
func refuse(t *testing.T, o Options, r transport.Resource) {
	t.Helper()
	read := func() string {
		part, err := os.ReadFile(o.Name + ".part")
		state, stateErr := os.ReadFile(o.Name + ".part.state")
		testkit.Holds(t, err == nil && stateErr == nil, err, stateErr)
		return string(part) + string(state)
	}
	before := read()
	f := create(t, o)
	have, err := f.Begin(r, ranges.Range{Length: r.Size})
	testkit.Holds(t, have == nil && err != nil && strings.Contains(err.Error(), ".part holds ") && !strings.Contains(err.Error(), "\n"), have, err)
	testkit.Holds(t, !f.Fits(r) && f.Continues(), "the part is said to fit, or not to be there")
	abort(t, f, false)
	testkit.Same(t, read(), before)
}

// A part from another URL is continued if the checksum is equal, and refused otherwise.
func TestAnotherURLContinuesAProvenPart(t *testing.T) {
	content := text("1", 400_000)
	sum := sha256.Sum256(content)
	verified := func(o *Options) { o.Checksum = sum[:] }
	for name, test := range map[string]struct {
		options  func(*Options)
		resource func(*transport.Resource)
		goesOn   bool
	}{
		"checksum":                    {verified, func(*transport.Resource) {}, true},
		"checksum, other validators":  {verified, func(r *transport.Resource) { r.ETag, r.LastModified = `"2"`, "" }, true},
		"ETag and date":               {nil, func(*transport.Resource) {}, false},
		"no validators, but a digest": {nil, func(r *transport.Resource) { r.ETag, r.LastModified, r.SHA256 = "", "", sum[:] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := interrupted(t, content, test.options)
			other, now := o, resourceOf(content, `"1"`)
			other.URL = "https://other.example/f?signature=2"
			test.resource(&now)
			if !test.goesOn {
				refuse(t, other, now)
				now = resourceOf(content, `"1"`)
				other = o
			}
			f, have := begin(t, other, now)
			testkit.Alike(t, have, []ranges.Range{most}, most)
			finish(t, f, have, content)
		})
	}
}

// Without Resume an earlier part is overwritten.
func TestACallMayBeginAnew(t *testing.T) {
	content, other := text("1", 400_000), text("2", 2000)
	for etag, now := range map[string][]byte{`"1"`: content, `"2"`: other} {
		o := interrupted(t, content, nil)
		o.Resume = false
		f, have := begin(t, o, resourceOf(now, etag))
		testkit.Holds(t, have == nil, have)
		finish(t, f, have, now)
	}
}

// Bytes after the end of a range make the bytes of this call doubtful. The bytes of earlier
// calls stay.
func TestDistrustKeepsEarlierBytes(t *testing.T) {
	content := text("1", 400_000)
	o := interrupted(t, content, nil)
	f, _ := begin(t, o, resourceOf(content, `"1"`))
	write(t, f, content, ranges.Range{Offset: mostOfIt, Length: 1000})
	abort(t, f, true)
	f, have := begin(t, o, resourceOf(content, `"1"`))
	testkit.Alike(t, have, []ranges.Range{most}, most)
	finish(t, f, have, content)
}
