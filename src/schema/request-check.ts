import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Problem } from '../core/result.ts'
import { suggest } from '../core/suggest.ts'
import { explain } from './explain.ts'

/** Problems of a value; none: it is good. `coerced` checks change texts of a query into what their schema says. */
export type Check = (value: unknown) => readonly Problem[]

/**
 * Compiles checks of requests against schemas that may refer to `#/components/schemas/…`. Every problem is told at once,
 * down to the first 20.
 */
export class RequestChecks {
  readonly #strict = makeAjv(false)
  readonly #coercing = makeAjv(true)

  constructor(components: Readonly<Record<string, object>>) {
    const shared = { $id: 'api', components: { schemas: components } }
    for (const ajv of [this.#strict, this.#coercing]) ajv.addSchema(shared)
  }

  body(schema: object): Check {
    return this.#check(this.#strict, schema)
  }

  /** Of a query string. Changes the value: numbers and booleans come as texts. */
  coerced(schema: object): Check {
    return this.#check(this.#coercing, schema)
  }

  #check(ajv: Ajv2020, schema: object): Check {
    const validate = ajv.compile(absolute(schema) as object)
    return (value) => {
      if (validate(value)) return []
      const problems = (validate.errors ?? []).slice(0, 20).flatMap((error): Problem[] => {
        if (error.keyword !== 'additionalProperties') return explain([error], value)
        const { additionalProperty: name } = error.params as { additionalProperty: string }
        const known = Object.keys((error.parentSchema as { properties?: object } | undefined)?.properties ?? {})
        const meant = suggest(name, known)
        const at = error.instancePath.split('/').slice(1)
        const field = [...at, name].join('.').slice(0, 200)
        return [
          {
            field,
            value: '',
            message: 'is not known',
            remedy: meant === null ? 'remove it' : `did you mean ${meant}?`,
          },
        ]
      })
      return problems.length > 0
        ? problems
        : [{ field: 'value', value: '', message: 'is not as it must be', remedy: 'see /openapi.json' }]
    }
  }
}

function makeAjv(coerceTypes: boolean): Ajv2020 {
  return new Ajv2020({
    strict: false,
    allErrors: true,
    coerceTypes,
    verbose: true,
    validateFormats: false,
    ownProperties: true,
  })
}

/** References of an OpenAPI document lead into the document; here that is the schema called `api`. */
function absolute(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(absolute)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) =>
      name === '$ref' && typeof inner === 'string' && inner.startsWith('#/')
        ? [name, `api${inner}`]
        : [name, absolute(inner)],
    ),
  )
}
