import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import attempt from '../../schemas/attempt.json' with { type: 'json' }
import control from '../../schemas/control.json' with { type: 'json' }
import deliveryHeaders from '../../schemas/delivery-headers.json' with { type: 'json' }
import laneState from '../../schemas/lane-state.json' with { type: 'json' }
import rejected from '../../schemas/rejected.json' with { type: 'json' }
import secret from '../../schemas/secret.json' with { type: 'json' }
import subscription from '../../schemas/subscription.json' with { type: 'json' }

/** The one definition of every record we write, as it stands in `schemas/`. */
export const schemas = { attempt, control, deliveryHeaders, laneState, rejected, secret, subscription } as const

export type SchemaName = keyof typeof schemas

let ajv: Ajv2020 | undefined
const compiled = new Map<SchemaName, ValidateFunction>()

/** Compiled on first use: a command that decodes nothing should not pay for seven schemas. */
export function validator(name: SchemaName): ValidateFunction {
  let validate = compiled.get(name)
  if (validate === undefined) {
    ajv ??= new Ajv2020({ strict: true, allErrors: true, discriminator: true, allowUnionTypes: true })
    validate = ajv.compile(schemas[name])
    compiled.set(name, validate)
  }
  return validate
}
