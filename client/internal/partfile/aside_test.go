package partfile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
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
		if _, err := f.WriteAt(content[r.Offset:r.End()], int64(r.Offset)); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

// expectNames fails unless the directory holds these files.
func expectNames(t *testing.T, name string, want ...string) {
	t.Helper()
	if got := names(t, name); !reflect.DeepEqual(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
}

// finish writes the missing ranges, and fails unless the file has the content.
func finish(t *testing.T, f *File, have []ranges.Range, content []byte) {
	t.Helper()
	write(t, f, content, missing(quantity.Bytes(len(content)), have)...)
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
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
	if err := f.Abort(false); err != nil {
		t.Fatal(err)
	}
	return o
}

// A part from another URL is continued if the checksum is equal, or if size, validators and a
// sample of its bytes are.
func TestAnotherURLContinuesAProvenPart(t *testing.T) {
	content := text("1", 400_000)
	sum := sha256.Sum256(content)
	verified := func(o *Options) { o.Checksum = sum[:] }
	for name, test := range map[string]struct {
		options  func(*Options)
		resource func(*transport.Resource)
		again    quantity.Bytes
		goesOn   bool
	}{
		"ETag":                        {nil, func(*transport.Resource) {}, sampleBlocks * sampleSize, true},
		"checksum":                    {verified, func(*transport.Resource) {}, 0, true},
		"checksum, other validators":  {verified, func(r *transport.Resource) { r.ETag, r.LastModified = `"2"`, "" }, 0, true},
		"other ETag":                  {nil, func(r *transport.Resource) { r.ETag = `"2"` }, 0, false},
		"other date":                  {nil, func(r *transport.Resource) { r.LastModified = "Sun, 02 Jan 2000 00:00:00 GMT" }, 0, false},
		"no validators":               {nil, func(r *transport.Resource) { r.ETag, r.LastModified = "", "" }, 0, false},
		"no validators, but a digest": {nil, func(r *transport.Resource) { r.ETag, r.LastModified, r.SHA256 = "", "", sum[:] }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := interrupted(t, content, test.options)
			o.URL = "https://other.example/f?signature=2"
			now := resourceOf(content, `"1"`)
			test.resource(&now)
			f, have := begin(t, o, now)
			want := most.Length - test.again
			if !test.goesOn {
				want = 0
			}
			if got := ranges.NewSet(have...).Bytes(); got != want {
				t.Errorf("%d bytes are kept, want %d", got, want)
			}
			finish(t, f, have, content)
		})
	}
}

// The date is a validator, too.
func TestAnotherURLWithADateAlone(t *testing.T) {
	content := text("1", 400_000)
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f?signature=1"}
	f, _ := begin(t, o, resourceOf(content, ""))
	write(t, f, content, most)
	if err := f.Abort(false); err != nil {
		t.Fatal(err)
	}
	o.URL = "https://h/f?signature=2"
	f, have := begin(t, o, resourceOf(content, ""))
	if got := ranges.NewSet(have...).Bytes(); got != most.Length-sampleBlocks*sampleSize {
		t.Errorf("%d bytes are kept", got)
	}
	finish(t, f, have, content)
}

// Another file of the same size, date and ETag, such as one of the same build, is noticed. The
// part stays as it was.
func TestAnotherFileWithTheSameValidators(t *testing.T) {
	content, other := text("1", 400_000), text("2", 400_000)
	o := interrupted(t, content, nil)
	before, err := os.ReadFile(o.Name + ".part.state")
	if err != nil {
		t.Fatal(err)
	}
	theirs := o
	theirs.URL = "https://h/g"
	f, have := begin(t, theirs, resourceOf(other, `"1"`))
	parts := missing(f.record.resource.Size, have)
	f.record.checked = f.record.checked.Add(-checkpointTime)
	write(t, f, other, parts[len(parts)-1]) // This range follows the earlier part.
	if _, err := f.WriteAt(other[parts[0].Offset:parts[0].End()], int64(parts[0].Offset)); err == nil || !strings.Contains(err.Error(), "is of another file") {
		t.Errorf("the write ends with %v", err)
	}
	if err := f.Abort(false); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(o.Name + ".part.state"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the state was %s and is %s (%v)", before, after, err)
	}
	f, have = begin(t, o, resourceOf(content, `"1"`))
	if !reflect.DeepEqual(have, []ranges.Range{most}) {
		t.Errorf("%v is kept, want %v", have, most)
	}
	finish(t, f, have, content)
}

// Blocks of zeros occur in many files, so they prove nothing.
func TestZerosAreNoSample(t *testing.T) {
	content := make([]byte, 400_000)
	o := interrupted(t, content, nil)
	o.URL = "https://h/g"
	f, have := begin(t, o, resourceOf(content, `"1"`))
	if have != nil {
		t.Errorf("%v is kept", have)
	}
	finish(t, f, have, content)
}

// If a call gets another answer and ends without a complete file, the earlier part is back.
func TestThePartComesBack(t *testing.T) {
	content, other := text("1", 400_000), text("2", 2000)
	page := transport.Resource{Size: 2000}
	for name, test := range map[string]struct {
		options  func(*Options)
		resource transport.Resource
		end      func(*File) error
	}{
		"nothing came":       {nil, resourceOf(other, `"2"`), func(f *File) error { return f.Abort(false) }},
		"distrusted":         {nil, resourceOf(other, `"2"`), func(f *File) error { f.WriteAt(other, 0); return f.Abort(true) }},
		"no validator":       {nil, page, func(f *File) error { f.WriteAt(other, 0); return f.Abort(false) }},
		"no size":            {nil, transport.Resource{Size: -1}, func(f *File) error { f.WriteAt(other, 0); return f.Abort(false) }},
		"not to be resumed":  {func(o *Options) { o.Resume = false }, resourceOf(content, `"1"`), func(f *File) error { f.WriteAt(other, 0); return f.Abort(false) }},
		"a full disk":        {nil, transport.Resource{Size: 1 << 60, ETag: `"1"`}, func(f *File) error { return f.Abort(false) }},
		"a sync that failed": {nil, resourceOf(other, `"2"`), func(f *File) error { f.part.flush = failingOnce(); f.WriteAt(other, 0); f.Abort(false); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			o := interrupted(t, content, nil)
			changed := o
			if test.options != nil {
				test.options(&changed)
			}
			f, err := Create(changed)
			if err != nil {
				t.Fatal(err)
			}
			if have, _ := f.Begin(test.resource, ranges.Range{}); have != nil {
				t.Errorf("%v is kept", have)
			}
			if s, ok := found(o.Name + ".part.old"); !ok || s.proven() != mostOfIt {
				t.Errorf("meanwhile the part is not aside, but %+v", s)
			}
			if err := test.end(f); err != nil {
				t.Fatal(err)
			}
			expectNames(t, o.Name, "file.part", "file.part.state")
			f, have := begin(t, o, resourceOf(content, `"1"`))
			if !reflect.DeepEqual(have, []ranges.Range{most}) {
				t.Errorf("%v is kept, want %v", have, most)
			}
			finish(t, f, have, content)
		})
	}
}

// If bytes of two files have arrived, both parts stay until one file is complete, even if the
// calls are killed.
func TestTwoFilesTakeTurns(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed: %v", killed), func(t *testing.T) {
			first, second := text("1", 400_000), text("2", 400_000) // Of the same size.
			o := interrupted(t, first, nil)
			had := map[string]quantity.Bytes{`"1"`: most.Length}
			var f *File
			var have []ranges.Range
			for turn, etag := range []string{`"2"`, `"1"`, `"2"`, `"2"`, `"1"`} {
				content := map[string][]byte{`"1"`: first, `"2"`: second}[etag]
				f, have = begin(t, o, resourceOf(content, etag))
				if got := ranges.NewSet(have...).Bytes(); got != had[etag] {
					t.Fatalf("turn %d: %d bytes of %s are kept, want %d", turn, got, etag, had[etag])
				}
				if etag == `"2"` {
					write(t, f, content, ranges.Range{Offset: quantity.Bytes(turn * 1000), Length: 1000})
					had[etag] += 1000
				}
				var err error
				if killed {
					err = f.record.checkpoint(f.record.snapshot())
					f.part.file.Close() // As the kernel does.
				} else if turn < 4 {
					err = f.Abort(false)
				}
				if err != nil {
					t.Fatal(err)
				}
				expectNames(t, o.Name, "file.part", "file.part.old", "file.part.old.state", "file.part.state")
			}
			if killed {
				f, have = begin(t, o, resourceOf(first, `"1"`))
			}
			finish(t, f, have, first)
		})
	}
}

// Of two parts that match nothing, the one with more bytes stays.
func TestTheBetterOfTwoPartsStays(t *testing.T) {
	content := text("1", 400_000)
	o := interrupted(t, content, nil)
	for _, etag := range []string{`"2"`, `"3"`, `"4"`} {
		f, have := begin(t, o, resourceOf(content, etag))
		if have != nil {
			t.Errorf("%v of another file is kept for %s", have, etag)
		}
		write(t, f, content, ranges.Range{Length: 1000})
		if err := f.Abort(false); err != nil {
			t.Fatal(err)
		}
	}
	f, have := begin(t, o, resourceOf(content, `"1"`))
	if !reflect.DeepEqual(have, []ranges.Range{most}) {
		t.Errorf("%v is kept, want %v", have, most)
	}
	finish(t, f, have, content)
}

// A part without a state, for example from another program, stays until the file is complete.
func TestAPartWithoutAStateComesBack(t *testing.T) {
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
	if err := os.WriteFile(o.Name+".part", []byte("another program's"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, _ := begin(t, o, resource)
	if err := f.Abort(false); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(o.Name + ".part"); string(text) != "another program's" {
		t.Errorf("the part holds %q (%v)", text, err)
	}
}

// A user's file is not replaced, and no byte of the part is lost.
func TestAFileInTheWayIsNotReplaced(t *testing.T) {
	content := text("1", 400_000)
	o := interrupted(t, content, nil)
	if err := os.WriteFile(o.Name+".part.old", []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Begin(resourceOf(content, `"2"`), ranges.Range{}); err == nil || !strings.Contains(err.Error(), ".part.old: the file exists") {
		t.Errorf("Begin returns %v", err)
	}
	if err := f.Abort(false); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(o.Name + ".part.old"); string(text) != "precious" {
		t.Errorf("the file holds %q", text)
	}
	f, have := begin(t, o, resourceOf(content, `"1"`))
	defer f.Abort(false)
	if !reflect.DeepEqual(have, []ranges.Range{most}) {
		t.Errorf("%v is kept, want %v", have, most)
	}
}

// Bytes after the end of a range make the bytes of this call doubtful. The bytes of earlier
// calls stay.
func TestDistrustKeepsEarlierBytes(t *testing.T) {
	content := text("1", 400_000)
	o := interrupted(t, content, nil)
	f, _ := begin(t, o, resourceOf(content, `"1"`))
	write(t, f, content, ranges.Range{Offset: mostOfIt, Length: 1000})
	if err := f.Abort(true); err != nil {
		t.Fatal(err)
	}
	f, have := begin(t, o, resourceOf(content, `"1"`))
	if !reflect.DeepEqual(have, []ranges.Range{most}) {
		t.Errorf("%v is kept, want %v", have, most)
	}
	finish(t, f, have, content)
}
