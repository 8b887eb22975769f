// Package torture keeps the score of a torture run: one row for each class of faults, one table for
// people, one JSON file for machines. What a class does to a store is the business of that store's
// tests; this package does not run anything.
//
// A class that did not run has its reason in the row. It is shown, never left out, and does not count
// as passed.
package torture
