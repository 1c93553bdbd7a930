package partfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestNamesOfUnfinishedDownloadsAreRefused(t *testing.T) {
	for _, name := range []string{"x.part", "a/x.PART", "x.part.state", "x.part.state.new", ".part", "x.part/."} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), "as files of unfinished downloads do: give another name") {
			t.Errorf("CheckName(%q) returns %v", name, err)
		}
	}
	for _, name := range []string{"x", "x.part1", "part", "x.part/y", "x.state", "x.old"} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) returns %v", name, err)
		}
	}
}

// A complete file stays, even if no download could continue it.
func TestAWholeFileStaysWhoseNameIsTaken(t *testing.T) {
	for _, resume := range []bool{true, false} {
		o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: resume, URL: "https://h/f"}
		f, _ := begin(t, o, transport.Resource{Size: 4, ETag: `"1"`, NoRanges: true})
		writeAt(t, f, []byte("text"), 0)
		testkit.OK(t, os.Mkdir(o.Name, 0o700))
		_, err := f.Commit()
		testkit.Same(t, strings.HasSuffix(err.Error(), "file.part is whole"), resume, err)
		if text, _ := os.ReadFile(o.Name + ".part"); (string(text) == "text") != resume {
			t.Errorf("the part holds %q", text)
		}
		if entries, _ := os.ReadDir(filepath.Dir(o.Name)); (len(entries) == 2) != resume {
			t.Errorf("%v is in the directory", entries)
		}
	}
}
