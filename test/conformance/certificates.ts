import { generate } from 'selfsigned'

export interface Certificate {
  readonly key: string
  readonly cert: string
}

export const certificateName = 'receiver.example'
const dayMs = 86_400_000

/** A private CA and the server certificates that the TLS cases name, for `receiver.example`. */
export class Certificates {
  readonly #ca: Certificate
  readonly #foreign: Certificate
  readonly #made = new Map<string, Promise<Certificate>>()

  private constructor(ca: Certificate, foreign: Certificate) {
    this.#ca = ca
    this.#foreign = foreign
  }

  static async create(): Promise<Certificates> {
    return new Certificates(await authority('Hooktide test CA'), await authority('Foreign CA'))
  }

  get ca(): string {
    return this.#ca.cert
  }

  /** Null: a kind this set does not have. */
  get(kind: string): Promise<Certificate> | null {
    const now = Date.now()
    const days = (n: number) => new Date(now + n * dayMs)
    const specs: Record<string, () => Promise<Certificate>> = {
      good: () => leaf(this.#ca, certificateName, days(-1), days(30)),
      expired: () => leaf(this.#ca, certificateName, days(-30), days(-1)),
      notyet: () => leaf(this.#ca, certificateName, days(10), days(30)),
      wronghost: () => leaf(this.#ca, 'other.example', days(-1), days(30)),
      untrusted: () => leaf(this.#foreign, certificateName, days(-1), days(30)),
      selfsigned: () => leaf(null, certificateName, days(-1), days(30)),
    }
    const name = aliases[kind.toLowerCase().replace(/[-_ ]/g, '')] ?? kind.toLowerCase().replace(/[-_ ]/g, '')
    const spec = Object.hasOwn(specs, name) ? specs[name] : undefined
    if (spec === undefined) return null
    let made = this.#made.get(name)
    if (made === undefined) {
      made = spec()
      this.#made.set(name, made)
    }
    return made
  }
}

const aliases: Record<string, string> = {
  valid: 'good',
  ok: 'good',
  self: 'selfsigned',
  wrongname: 'wronghost',
  wrong: 'wronghost',
  wrongsan: 'wronghost',
  altname: 'wronghost',
  mismatch: 'wronghost',
  othername: 'wronghost',
  unknownca: 'untrusted',
  future: 'notyet',
  notyetvalid: 'notyet',
}

async function authority(name: string): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  })
  return { key: made.private, cert: made.cert }
}

async function leaf(
  ca: Certificate | null,
  name: string,
  notBeforeDate: Date,
  notAfterDate: Date,
): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate,
    notAfterDate,
    extensions: [
      { name: 'basicConstraints', cA: false },
      { name: 'extKeyUsage', serverAuth: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: name }] },
    ],
    ...(ca === null ? {} : { ca }),
  })
  return { key: made.private, cert: made.cert }
}
