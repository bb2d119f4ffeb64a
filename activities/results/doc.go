// Package results decides how much of an attempt's answer travels, and resolves the rest from the store.
//
// An answer of at most an inline limit travels whole. Of a larger one the ends of the streams travel, with the key of
// its record in the store (Cut). Expressions read such a result with ResolveView, and lists with a ListCache.
//
// It imports proto and activities/store.
package results
