// Package manifest makes the objects of Kubernetes that an attempt consists of: a Job, and a Secret with what the program is
// given. It also has the names, labels and annotations by which nodes find them again.
//
//	Secret NAME   input.json, and the values of secret variables
//	Job NAME      one pod, which is never replaced; labels and annotations name the attempt and the dispatch
//	  switchyard-helper (init)   copies the helper into the pod, if there is one
//	  main                       runs the program
//
// NAME follows from the attempt, so that each node makes the same objects, and a second Job of one attempt cannot exist.
//
// The package is pure: it imports proto, activities/executor, activities/executor/k8sjob/podhelper, workflows/podspec, the
// types of Kubernetes and the standard library.
package manifest
