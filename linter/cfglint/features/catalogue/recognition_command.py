"""``cfglint frameworks PATH…``: what each document is taken for, how sure that is, and what told it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cfglint.command import inputs, options, output
from cfglint.command.globs import ByPath
from cfglint.errors import UsageError
from cfglint.features.catalogue.recognition import recognition
from cfglint.features.catalogue.recognition_page import as_json, as_text

if TYPE_CHECKING:
    from cfglint.command.flags import Args
    from cfglint.document.document import File
    from cfglint.engine.run import Run
    from cfglint.features.catalogue.recognition import Recognition


def tell(args: Args) -> int:
    """Print what is found; 1 where a file that was named is for no framework, 2 where one cannot be read."""
    args.no_detect = True
    args.gpu = args.hardware = args.rule = args.select = args.ignore = args.model_config = None
    args.online = False
    run = options.run(args, ())
    wrong: list[str] = []
    found: list[Recognition] = []
    unknown, none = False, 0
    for path, named in list(inputs.find(args.paths, wrong.append)):
        try:
            loaded = inputs.load(path, named=named)
        except UsageError as error:
            wrong.append(str(error))
            continue
        told = [] if loaded is None else _documents(run, args, loaded[0])
        if all(one.framework is None for one in told):
            unknown = unknown or named
            if not named and not args.verbose:
                none += 1
                continue
            found += told
        else:  # of a script, the commands that train
            found += [one for one in told if one.framework is not None or args.verbose]
    output.complain(wrong)
    if args.format == "json":
        sys.stdout.write(as_json(found))
    elif found or none or not wrong:
        output.emit(lambda style: as_text(found, none, style, verbose=args.verbose), args)
    return 2 if wrong else int(unknown)


def _documents(run: Run, args: Args, file: File) -> list[Recognition]:
    run.look_near(file.path)
    named, _ = run.named_for(file.path)
    said = run.by_path.glob_of(file.path) if isinstance(run.by_path, ByPath) else None
    by = "flag" if args.flag and said is None else "settings"
    glob = None if said is None else said[0]
    return [recognition(run, document, named, by, glob) for document in file.documents]
