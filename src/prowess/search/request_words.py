"""Beginnings of words that requests have, by which a skill is known that lists the words of everybody's requests."""

from __future__ import annotations

LETTERS = 5
"""As many letters of a word count: so ``create`` and ``creating`` are one, as they are for the index."""
WEIGHTS = {
    32: """
        go retur run servi write
    """,
    16: """
        add app appro build chang check code confi data datab error every field file fix func funct handl http
        id int inter json keep last md month must net order packa page plan proce produ proje re repor resul
        revie sessi set skill start strin struc team tell test three two user users value
    """,
    8: """
        accep activ actua added agent ai alrea analy anyth api archi asks audit avail back both break bundl
        cache call calle calls canno ci clean cli close colle colum com comma commi compa compl conne conta
        conte conve corre creat curre custo dashb days db defau defin depen deplo desig diffe direc docum done
        email end engin err even event exact exist expla fails featu few files final find finis first flow follo
        forma found full gener git good happe high https hub imple impro inclu index input insta issue job know
        launc lead line list log look main map marke messa minut name needs never next nil numbe open optio os
        outpu pass passe path payme platf plugi point postg print provi publi put ran rate read recor relea repo
        repos reque requi respo right runni saa save says secon serve shows small somet spec sql state statu
        step still store succe sure syste targe task throu time times tool total trace trans txt type under
        updat uses valid verif versi way week wheth why witho work workf works wrong
    """,
    4: """
        acces accou acros actio addin addre admin adopt again ago alert alway amoun anoth answe appli apply
        aroun ask attem autho autom based behav being best bette betwe big block board body branc brand broke
        budge bug busin calcu calli cance captu case chain chann claim class claud clear clien codeb color comme
        compe compo compu conce const consu conti contr copy core count crash crite csv day debug decid decis
        delet deliv descr detai devel diagn diff disco doesn doing down downl draft durat durin edit else emplo
        empty endpo enter entry envir etc eval evalu evide examp execu expec exper explo expor expos exter extra
        fail faile faili failu faste feels fetch figur fine five flag flat focus folde form four frame free gets
        getti given going googl graph green hand hando heade healt hour hours human ident impor incre insid
        inste instr integ inval inven items js keeps key landi large layer leade least level libra lifec limit
        lines link live ll load local logge loggi logs long looks loop lot maint manag many match max may means
        measu meeti memor merge metho metri migra missi mode model modul move multi names night nobod node nodes
        non notes nothi notic notif obser off old onboa opens opera origi own owner pages panic param parse
        patte pdf peopl perfo perso phase pick pipel place plus polic pool port porta posit post power pr prese
        prici prima priva probl profi progr promp proof prope propo prove quart query quest range raw reach
        react reade readi reads ready real recei recom recov red redes reduc refer regis remov rende resol reten
        rewri risk root route row rows runs runti safe say scaff schem score scree scrip searc secti secur selec
        sell send separ seque setti sever share shell ship shipp showi signa signu simpl simul singl slow solut
        solve someo sourc space speci src stand stop sub subsc sugge summa suppo suspe table take tasks teamm
        teams tenan tests text think third those thoug threa timeo title today top track traff true trust try
        turn until used var varia walk wants web weeks whole windo withi worke writi yaml year yet
    """,
    2: """
        accur artif askin assig audie auth authe auto avoid backe base basel basic batch begin behin bound built
        cases cause cd choos click compi condi conse consi cover criti cut cycle date detec dev docs drive dynam
        excep expli false filte finan fixed flags fresh front gate githu grace helpe histo idea image infra
        initi injec inves invoi jobs label langu laten later lates learn locat manua mark micro minim mobil
        monit much named nativ neede netwo objec once ones optim organ outco paral parti party persi phone plann
        posts pract predi prepa previ prior profe promo proto push py pytho quali queri queue quick reaso regio
        regre relat remem repli repre resea rest retri retry rules sales sampl scan sched scope self setup short
        sign site size slack snaps socia spend stack stati steps strat style submi super switc sync techn templ
        token tools treat trigg types upgra url usage visua watch worki writt years zero
    """,
}
"""By weight: in how many of 100 requests a word is, times how much it counts in a library, to a power of two. These are
the 758 that weigh most in 2,035 labelled requests of many kinds, for a library of 9,532 skills."""
