// Adds up what the test runs reported, and closes with one line: "N passed, N failed, N skipped".
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.argv[2] ?? '.'
const sum = { passed: 0, failed: 0, skipped: 0 }
for (const name of readdirSync(folder).filter((file) => file.endsWith('.json'))) {
  const report = JSON.parse(readFileSync(join(folder, name), 'utf8'))
  sum.passed += report.numPassedTests
  sum.failed += report.numFailedTests
  sum.skipped += report.numPendingTests + (report.numTodoTests ?? 0)
  for (const file of report.testResults) {
    const failed = file.assertionResults.filter((test) => test.status === 'failed')
    for (const test of failed) console.log(`failed: ${file.name}: ${test.fullName}`)
    // What is prepared for all tests of a file failed: none of them ran.
    if (file.status === 'failed' && failed.length === 0) {
      sum.failed += 1
      console.log(`failed: ${file.name}: ${file.message || 'its preparation failed'}`)
    }
  }
}
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
