// Package docs holds the documentation for users: the Markdown pages and pictures of this folder. Its package site makes a
// static site of them.
//
// A page answers a question of a person. The links of index.md, in their order, are the navigation. CONTRIBUTING.md explains
// what the fences of a page mean, and how they are tested.
//
// It imports nothing of Switchyard.
package docs
