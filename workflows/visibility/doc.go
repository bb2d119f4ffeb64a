// Package visibility defines the search attributes of runs: their meaning, and how they are written and read. Temporal's
// visibility finds runs by them, so that lists read nothing that they do not show, and people can filter by them in its Web UI.
//
// SQL stores have room for 10 attributes of type Keyword and 3 of each other type in a namespace. Runs use 6 of type Keyword, 3
// of type KeywordList, and one each of the types Text, Int and Datetime.
//
// It may import workflows/names, proto, and of Temporal its API and go.temporal.io/sdk/temporal and converter.
package visibility
