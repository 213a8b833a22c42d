"""Asks a solver about SMT-LIB files: `solve.py SOLVER SECONDS FILE...`.

Prints the solver's version, then for each file its answer and the seconds that it took. A file that takes longer than SECONDS
is answered `unknown`. The solvers are Python packages that `scripts/tools-smt` fetches.
"""

import sys
import time


def ask_bitwuzla(text, seconds):
    import bitwuzla

    manager, options = bitwuzla.TermManager(), bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, int(seconds * 1000))
    parser = bitwuzla.Parser(manager, options)
    parser.parse(text.replace("(check-sat)", ""), True, False)
    return str(parser.bitwuzla().check_sat()).split(".")[-1].lower()


def ask_z3(text, seconds):
    import z3

    solver = z3.Solver(ctx=z3.Context())
    solver.set("timeout", int(seconds * 1000))
    solver.from_string(text)
    return str(solver.check())


def ask_cvc5(text, seconds):
    import cvc5

    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    solver.setOption("fp-exp", "true")
    solver.setOption("tlimit-per", str(int(seconds * 1000)))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "law")
    symbols, answer = parser.getSymbolManager(), ""
    while True:
        command = parser.nextCommand()
        if command.isNull():
            return answer.split("(")[0].strip()
        answer = str(command.invoke(solver, symbols)).strip() or answer


def version(solver):
    from importlib.metadata import version

    return version({"z3": "z3-solver"}.get(solver, solver))


def main():
    solver, seconds, files = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    ask = {"bitwuzla": ask_bitwuzla, "z3": ask_z3, "cvc5": ask_cvc5}[solver]
    print(version(solver), flush=True)
    for path in files:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        begin = time.monotonic()
        try:
            answer = ask(text, seconds)
        except Exception as error:  # what a solver does not take is no answer
            answer = "error:" + " ".join(str(error).split())[:120].replace(" ", "_")
        print(answer, f"{time.monotonic() - begin:.2f}", flush=True)


main()
