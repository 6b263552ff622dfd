import { type ApiToken, readApiTokens } from '../core/api-token.ts'
import { problemText } from '../core/result.ts'
import { type Field, Invalid } from './fields.ts'

/** Entries of tokens: names, hashes and scopes, never a token; printed as stars all the same, lest somebody wrote one. */
export function apiTokens(): Field<readonly ApiToken[]> {
  return {
    t: 'field',
    duration: false,
    secret: true,
    env: 'yaml',
    fallback: [],
    read(value) {
      const { tokens, problems } = readApiTokens(value)
      const [first] = problems
      if (first === undefined) return tokens
      return new Invalid(problemText({ ...first, remedy: '' }), first.remedy)
    },
  }
}
