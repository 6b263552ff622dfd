export type JsonSchema = Readonly<Record<string, unknown>>

/** Short ways to write JSON Schema 2020-12. */

export const text = (maxLength: number, description?: string): JsonSchema =>
  described({ type: 'string', minLength: 1, maxLength }, description)

export const whole = (minimum: number, maximum: number, description?: string): JsonSchema =>
  described({ type: 'integer', minimum, maximum }, description)

export const flag = (description?: string): JsonSchema => described({ type: 'boolean' }, description)

export const choice = (values: readonly string[], description?: string): JsonSchema =>
  described({ type: 'string', enum: values }, description)

export const list = (items: JsonSchema, maxItems?: number): JsonSchema =>
  maxItems === undefined ? { type: 'array', items } : { type: 'array', items, maxItems }

export const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] })

export const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

/** An answer's object: everything named is there. */
export const answer = (properties: Readonly<Record<string, JsonSchema>>, description?: string): JsonSchema =>
  described({ type: 'object', properties, required: Object.keys(properties) }, description)

/** A request's object: nothing else may be in it. */
export const request = (
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): JsonSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

export const epochMs = (description: string): JsonSchema =>
  whole(0, Number.MAX_SAFE_INTEGER, `${description} (epoch ms)`)

function described(schema: JsonSchema, description: string | undefined): JsonSchema {
  return description === undefined ? schema : { ...schema, description }
}
