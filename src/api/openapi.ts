import type { ApiRoute } from './route.ts'
import { apiSchemas } from './schemas.ts'

/** OpenAPI 3.1 of the routes: the schemas in it are those that requests are checked against. */
export function openApi(routes: readonly ApiRoute[], version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const methods = paths[route.path] ?? {}
    methods[route.method.toLowerCase()] = operation(route)
    paths[route.path] = methods
  }
  return {
    openapi: '3.1.0',
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    info: {
      title: 'Hooktide',
      version,
      description: 'Webhooks from Kafka: subscriptions, events, deliveries, and steering them. Times are epoch ms.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: '`hooktide tokens create`' } },
      schemas: apiSchemas,
      responses: {
        Problem: { description: 'It was refused, or failed.', content: content('Problem', 'application/problem+json') },
      },
    },
  }
}

function operation(route: ApiRoute): object {
  const parameters = [
    ...paramsOf(route.path).map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...Object.entries(route.query ?? {}).map(([name, schema]) => ({ name, in: 'query', schema })),
    ...Object.entries(route.headers ?? {}).map(([name, description]) => ({
      ...{ name, in: 'header', description, schema: { type: 'string' } },
    })),
    ...(route.ifMatch === true ? [ifMatch] : []),
  ]
  const who = route.operatorsOnly === true ? ' Not for tokens that are bound to a tenant.' : ''
  return {
    operationId: operationId(route),
    tags: [route.tag],
    summary: route.summary,
    description: `${route.description === undefined ? '' : `${route.description} `}Scope: \`${route.scope}\`.${who}`,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: route.bodyOptional !== true,
            content: { 'application/json': { schema: route.body } },
          },
        }),
    responses: {
      [route.status]:
        route.answer === null
          ? { description: 'Done.' }
          : { description: 'Done.', content: content(route.answer, 'application/json') },
      default: { $ref: '#/components/responses/Problem' },
    },
  }
}

const ifMatch = {
  name: 'If-Match',
  in: 'header',
  required: true,
  description: 'The ETag of what is changed, or * for whatever is there.',
  schema: { type: 'string' },
}

function content(name: string, type: string): object {
  return { [type]: { schema: { $ref: `#/components/schemas/${name}` } } }
}

export function paramsOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
}

/** `postSubscriptionsIdPause`. */
function operationId({ method, path }: ApiRoute): string {
  const words = path
    .replace('/v1/', '')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => (word[0] as string).toUpperCase() + word.slice(1)).join('')
}
