// Package manifest builds the Kubernetes objects of an attempt: a Job, and a Secret with the input of the program. It
// also defines the names, labels and annotations by which nodes find these objects again.
//
//	Secret NAME   input.json, the command if the program reads it from a file, and the values of secret variables
//	Job NAME      one pod, which is never replaced; labels and annotations name the attempt and the dispatch
//	  switchyard-helper (init)   copies the helper into the pod, if there is one
//	  main                       runs the program
//
// NAME is derived from the attempt, so that every node builds the same objects, and an attempt cannot have two Jobs.
//
// The package is pure: it imports proto, activities/executor, activities/executor/k8sjob/podhelper, workflows/interpreter,
// workflows/podspec, the types of Kubernetes and the standard library.
package manifest
