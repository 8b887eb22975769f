// Package mutant plants bugs on purpose, so that the tests can be tested: a suite that stays green with
// one of them switched on would not have noticed it in earnest either.
//
// A seed is one line beside the right code, if mutant.On(mutant.AckBeforeSync) { … }. In a program built
// without the tag "mutants" On is a constant false and the compiler removes the line. With the tag the
// environment variable MUTANT names the one seed that is on. "make mutants" runs the suite against each.
//
// It is no fuzzer of code: every seed is a mistake that stores like this one have made.
package mutant
