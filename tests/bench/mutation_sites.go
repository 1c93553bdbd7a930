// Prints the places of Go files that tests/bench/mutants.py can change: file, first and last byte, new
// text and kind, with tabs between. Needs Go's standard library alone.
// usage: go run mutation_sites.go -- FILE...
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
)

var flipped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL,
}

var swapped = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
	token.LAND: token.LOR, token.LOR: token.LAND,
}

func main() {
	for _, path := range os.Args[2:] {
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		files := token.NewFileSet()
		tree, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			panic(err)
		}
		at := func(place token.Pos) int { return files.Position(place).Offset }
		site := func(from, to int, with, kind string) {
			fmt.Printf("%s\t%d\t%d\t%s\t%s\n", path, from, to, with, kind)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			switch one := node.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BinaryExpr:
				if with, ok := flipped[one.Op]; ok {
					site(at(one.OpPos), at(one.OpPos)+len(one.Op.String()), with.String(), "comparison")
				}
				if with, ok := swapped[one.Op]; ok {
					site(at(one.OpPos), at(one.OpPos)+len(one.Op.String()), with.String(), "operator")
				}
			case *ast.BasicLit:
				if one.Kind == token.INT || one.Kind == token.FLOAT {
					site(at(one.Pos()), at(one.End()), "("+one.Value+" + 1)", "constant")
				}
			case *ast.IfStmt:
				from, to := at(one.Cond.Pos()), at(one.Cond.End())
				site(from, to, "!("+strings.Join(strings.Fields(string(text[from:to])), " ")+")", "negated")
			case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt, *ast.DeferStmt:
				site(at(node.Pos()), at(node.End()), "", "deleted")
			case *ast.AssignStmt:
				if one.Tok != token.DEFINE {
					site(at(one.Pos()), at(one.End()), "", "deleted")
				}
			}
			return true
		})
	}
}
