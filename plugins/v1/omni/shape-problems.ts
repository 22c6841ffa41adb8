import type { z } from 'zod'

/** What is wrong with the arguments of a tool, or with the answer that it got, in words that a model can act on. Pure. */
export function shapeProblems ({ issues }: z.ZodError): string {
  return issues.map(issue => {
    const path = issue.path.map(String).join('.')
    return `${path === '' ? 'the object' : `\`${path}\``} ${problemOf(issue)}`
  }).join('; ')
}

function problemOf (issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type': return `must be present and of type ${issue.expected}`
    case 'invalid_value': return `must be one of ${issue.values.map(value => JSON.stringify(value)).join(', ')}`
    case 'too_small': return `must be ${countedAs(issue.origin)} of at least ${issue.minimum}`
    case 'too_big': return `must be ${countedAs(issue.origin)} of at most ${issue.maximum}`
    case 'unrecognized_keys': return `has parameters that the tool does not know: ${issue.keys.join(', ')}`
    default: return 'is not what the tool takes; see its parameters'
  }
}

function countedAs (origin: string): string {
  return origin === 'string' ? 'text with a length' : origin === 'array' ? 'a list with a number of entries' : 'a number'
}
