package download

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// edges are the files of the engine with rescue that wait, act, or read the clock: the loop with its actions,
// and what other goroutines do. Both engines share task.go and pool.go.
var edges = []string{"attempt.go", "learn.go", "loop.go", "pool.go", "receive.go", "task.go"}

// forbidden is what no step may use, by package, except the types and functions that are listed.
var forbidden = map[string][]string{
	"context": {"CancelFunc"},
	"io":      {"ReadCloser"},
	"sync":    {"WaitGroup"},
	"time":    {"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"},
}

// acts are methods that only actions call.
var acts = []string{
	"Ask", "Await", "Close", "Commit", "Dial", "Get", "Head", "Lock", "Log", "Owes", "Peek", "Record", "Resize",
	"Unlock", "WriteAt", "Whole", "call", "cancel", "launch", "perform", "post", "put",
}

// Steps decide: they read counters of sockets and change the state. All else are actions.
func TestStepsWaitForNothingAndDoNothing(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, name := range names {
		isOther := strings.HasPrefix(name, "published") || strings.HasSuffix(name, "_test.go")
		if isOther || slices.Contains(edges, name) {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		packages := map[string]bool{}
		for _, i := range file.Imports {
			packages[filepath.Base(strings.Trim(i.Path.Value, `"`))] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			wrong := ""
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "step" {
					steps++
				}
			case *ast.GoStmt:
				wrong = "starts a goroutine"
			case *ast.SendStmt, *ast.SelectStmt:
				wrong = "uses a channel"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					wrong = "waits for a channel"
				}
			case *ast.SelectorExpr:
				of, isName := n.X.(*ast.Ident)
				if isName && packages[of.Name] {
					if allowed, is := forbidden[of.Name]; is && !slices.Contains(allowed, n.Sel.Name) {
						wrong = "uses " + of.Name + "." + n.Sel.Name
					}
				}
			case *ast.CallExpr:
				if sel, is := n.Fun.(*ast.SelectorExpr); is && slices.Contains(acts, sel.Sel.Name) {
					wrong = "calls " + sel.Sel.Name
				}
			}
			if wrong != "" {
				t.Errorf("%v %s: an action does that (loop.go)", files.Position(n.Pos()), wrong)
			}
			return true
		})
	}
	if steps < 5 {
		t.Errorf("%d steps are outside of the loop's files", steps)
	}
}
